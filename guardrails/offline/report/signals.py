"""
Tells whether a result says that it is complete, or how to go on if it is not.
"""

import re

from typing import Final, Literal

from guardrails.core.result.completeness import cut_in
from guardrails.core.result.names import about
from guardrails.offline.transcripts.calls import RecordedCall


LOOKED_AT: Final = 16_384
"""Characters at either end of a recorded result in which a signal is looked for."""
Signal = Literal["said", "absent", "dead end"]

_NEAR: Final = 200
"""Characters at either end of a text in which it says that it is all."""
_ALL: Final = re.compile(
    r"\b(?:no (?:more|further|other) (?:results?|match(?:es)?|items?|rows?|pages?|entries|records|files)"
    r"|no (?:results?|match(?:es)?|items?|rows?|entries|records|files)(?: (?:were|was))? found"
    r"|end of (?:file|results?|list|listing|output)|(?:showing|displaying|returned|listed) all\b"
    r"|(?:showing|displaying|returned|results?|items?|rows?|page)\b[^\n]{0,24}?\b(\d{1,9}) of \1\b)"
)
_HINTS: Final = ("more", "page", "no ", "end of", "show", "truncat", "omitted", "too l", "limit", "result", "cut ")

_MEMBER: Final = re.compile(r'"([A-Za-z_@][\w.@$-]{0,47})"\s{0,9}:\s{0,9}("[^"]|[1-9]|true)?')
"""The name of a member, and how its value begins if that says something."""
_UNFINISHED: Final = re.compile(
    r'"(?:is_?complete|complete)"\s*:\s*false|"(?:is_?)?(?:truncated|incomplete|partial)"\s*:\s*true', re.IGNORECASE
)
_CUT: Final = ('"_truncated', "... [truncated: ")
_SIGNS: Final = frozenset({"cursor", "flag", "cut"})


def signal_of(call: RecordedCall) -> Signal:
    """
    Returns the word of a successful *call* on its completeness. It is `absent` if there is no word, and `dead end` if
    something is missing but no way to get it is told.

    Own records say it themselves. A JSON object has a field for it; a text says it in words at either end.
    """
    text = call.result
    if call.is_complete:
        return "said"
    if text is None:
        return "absent" if call.is_complete is None else "said"
    ends = text if len(text) <= 2 * LOOKED_AT else text[:LOOKED_AT] + text[-LOOKED_AT:]
    if call.is_complete is False:
        return "said" if _goes_on(ends) else "dead end"
    if call.decision is not None:
        return "absent"
    if not text.startswith(("{", "[")):
        return "said" if _in_words(text) else "absent"
    if text.startswith("[") or not any(_is_sign(at[1]) for at in _MEMBER.finditer(ends)):
        return "absent"
    return "dead end" if _UNFINISHED.search(ends) and not _goes_on(ends) else "said"


def _in_words(text: str) -> bool:
    ends = (text if len(text) <= 2 * _NEAR else f"{text[:_NEAR]}\n{text[-_NEAR:]}").lower()
    # Most texts have none of them, and a look at all that a text may say takes long.
    if not any(word in ends for word in _HINTS):
        return False
    return _ALL.search(ends) is not None or cut_in(text) is not None


def _is_sign(name: str) -> bool:
    return name == "is_complete" or about(name).more in _SIGNS


def _goes_on(text: str) -> bool:
    """
    Whether *text* tells how to get what is missing, or that there is a next page to ask for.
    """
    if any(mark in text for mark in _CUT):
        return True
    for at in _MEMBER.finditer(text):
        if at[2] is None:
            continue
        kind = about(at[1]).more
        if at[2] == "true":
            if kind == "flag":
                return True
        elif kind == "cursor" or at[1] == "next_action_hint":
            return True
    return False
