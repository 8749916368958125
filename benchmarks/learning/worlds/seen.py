"""
What the envelope says of faults that look like success, by class.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails import Envelope, Policy, Tool

from .answers import ARGUMENTS, FORMS, Form, by_form, by_signs, undeclared


FAILED: Final = "failed"
NOT_WHOLE: Final = "not complete"
WHOLE: Final = "complete"
FALSE: Final = "honest, called failed"
"""Of the honest answers beside them: each is one too many."""
SAID: Final = (FAILED, NOT_WHOLE, WHOLE, FALSE)
DECLARATIONS: Final[Mapping[str, Callable[[Form], Tool]]] = {
    "nothing declared": undeclared,
    "signs declared": by_signs,
    "signs, form and arguments declared": by_form,
}


def said(envelope: Envelope) -> str:
    """
    What an envelope calls a result.
    """
    return FAILED if not envelope.ok else NOT_WHOLE if envelope.is_complete is False else WHOLE


def seen(declared: Callable[[Form], Tool], policy: str = "default") -> dict[str, Counter[str]]:
    """
    By class of fault: what the envelopes of its forms say under a shipped *policy*, the tool of each declared so.
    """
    # A tool for each form, since each has declarations of its own.
    tools = [replace(declared(form), name=f"{form.tool}_{number}") for number, form in enumerate(FORMS)]
    rules = Policy.load(policy, tools=tools)
    found: dict[str, Counter[str]] = {}
    for form, tool in zip(FORMS, tools, strict=True):
        counts = found.setdefault(form.flaw, Counter(dict.fromkeys(SAID, 0)))
        told, honest = (
            said(_called(rules, f"{tool.name} {at}", tool.name, ARGUMENTS[form.tool], answer))
            for at, answer in enumerate((form.answer, form.honest))
        )
        counts[told] += 1
        counts[FALSE] += honest == FAILED
    return found


def _called(rules: Policy, name: str, tool: str, arguments: dict[str, Any], answer: Any) -> Envelope:
    # A session of its own: what is told of one form is not told because of another.
    with rules.session(name) as session:
        return session.call(tool, arguments, lambda *_: answer)
