"""
Tells whether a result says that it is complete, or how to go on if it is not: by the members of a JSON object, no prose is read.
"""

from typing import Any, Final, Literal

from guardrails.core.result.names import about
from guardrails.offline.transcripts.calls import RecordedCall
from guardrails.offline.transcripts.fields import json_in, mapping


Signal = Literal["said", "absent", "dead end"]

_SIGNS: Final = ("cursor", "flag", "cut", "end")
"""What names tell of completeness for sure."""
_CUTS: Final = ('"_truncated', "... [truncated: ")
"""The marks of a cut of ours, which says how much is left out."""


def signal_of(call: RecordedCall) -> Signal:
    """
    Returns the word of a successful *call* on its completeness. It is `absent` if there is no word, and `dead end` if
    something is missing but no way to get it is told. Own records say themselves whether it is complete.
    """
    text = call.result or ""
    value = mapping(json_in(text)) if text.startswith("{") else {}
    members = [*value.items(), *(inner for each in value.values() for inner in mapping(each).items())]
    signs: list[tuple[str, Any]] = [(kind, each) for name, each in members if (kind := about(name).more) in _SIGNS]
    complete = call.is_complete
    if call.decision is None:
        complete = None if not signs else ("cut", True) not in signs and ("end", False) not in signs
    goes_on = any(each and kind == "cursor" for kind, each in signs) or ("flag", True) in signs
    goes_on = goes_on or bool(value.get("next_action_hint")) or any(mark in text for mark in _CUTS)
    if complete is None:
        return "absent"
    return "said" if complete or goes_on or not text else "dead end"
