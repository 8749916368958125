"""
The words on a failure: the next step, and how often it worked before.
"""

from typing import Final

from guardrails.core.retries.decision import INSTEAD, Advice
from guardrails.core.retries.shrinkage import times
from guardrails.core.values.types import ErrorType, NextAction


UNKNOWN: Final = "It may have happened: check whether it did before you make this call again, or ask the user."
TWICE: Final = "The same call was made before and never said how it ended: it may have happened twice. Check that."
CANCELLED: Final = "It was cancelled, and may have happened: check that first; repeat it only if it is still wanted."
_HINTS: Final[dict[ErrorType, str]] = {
    "auth": "The credentials were refused. Ask the user; the same call will fail again.",
    "permission": "This is not permitted. Ask the user or choose another way; do not repeat the call.",
    "validation": "Correct the arguments; the same call will fail again.",
    "not_found": "What was asked for is not there. Check the name or id before calling again.",
    "invalid_path": "Correct the path; the same call will fail again.",
    "too_large": "Ask for less at a time.",
    "tool_missing": "Use one of the tools that are listed.",
    "conflict": "Something else is in the way. Resolve it, then the same call can work.",
    "precondition": "Do what is missing first, then repeat the same call.",
    "exec_nonzero": "Find and repair the cause, then run it again.",
    "code_error": "Read the error, correct the code, then run it again.",
    "cancelled": "The call was cancelled. Do not repeat it unless it is still wanted.",
}
NEXT: Final[dict[ErrorType, tuple[NextAction, str]]] = {kind: (INSTEAD[kind], hint) for kind, hint in _HINTS.items()}
HOPELESS: Final = "It does not pass by waiting. Use another tool, or tell the user what does not work."
OTHERWISE: Final[dict[NextAction, str]] = {
    "fix_precondition": "Repair the cause first, then repeat the same call.",
    "fix_arguments": "Correct the arguments, then call again.",
    "ask_user": "Ask the user how to go on; trying again rarely works here.",
    "give_up": HOPELESS,
}
"""The words for a next step that is not the usual one for its kind of failure."""
CORRECTING: Final[dict[NextAction, str]] = {
    "fix_arguments": "The user need not be asked.",
    "ask_user": "Ask the user before you try other arguments.",
}
"""The user's part in it, if records say how often other arguments work."""
SELDOM: Final = 1 / 3
"""Below it a retry is told with its chance."""


def repeat(said: Advice) -> str:
    """
    Returns the hint for a retry that is advised; one that seldom works is told with its chance.
    """
    wait = f"Wait {seconds(said.wait_ms)} s, then repeat" if said.wait_ms else "Repeat"
    if said.retries == 1 and 0 < said.p < SELDOM:
        return f"{wait} the same call once: that works {times(said.p)}. If it fails again, go another way."
    return f"{wait} the same call."


def seconds(wait_ms: int) -> str:
    """
    Returns *wait_ms* in seconds for a person: whole tenths, never less than the wait.
    """
    return f"{-(-wait_ms // 100) / 10:g}"
