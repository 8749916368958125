"""
The words of `Loops` for each pattern: the message, the next step, and the denial or nudge that carries them.

A message says no more than is known: what the calls were, and how they ended. The advice follows from the kind of the
failure. If the kind does not tell, a nudge advises nothing.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from guardrails.core.repetition.commands.waiting import runs_commands
from guardrails.core.repetition.patterns import brought_news
from guardrails.core.state import failing
from guardrails.core.state.state import Pending, SessionState
from guardrails.core.values.types import Denial, ErrorType, Nudge, Status, ToolCall


LOOPS: Final = "loops."
"""Codes begin with it."""
WORDS: Final[dict[str, tuple[str, str]]] = {
    "identical": (
        "This exact $tool call gave the same result $count times.",
        "Use the previous result; to learn more, change the arguments or call another tool.",
    ),
    "unrepaired": (
        "This exact $tool call has failed, and no call since is known to have changed anything.",
        "Correct the arguments, or remove the cause and call again. If neither can be done, say so.",
    ),
    "reread": (
        "This exact $tool call was answered before, and no call since is known to have changed anything.",
        "Use the previous result, unless the answer changes by itself or goes on with each call.",
    ),
    "cycle": (
        "The last $length calls were made $count times over, each time with the same results.",
        "To get on, make another call than these, or say what is missing.",
    ),
    "same_error": ("The last $count calls of `$tool` failed alike: $error.", ""),
    "sibling_errors": ("The last $count calls, of several tools, failed alike: $error.", ""),
    "unknown_tool": ("The last $count calls of `$tool` failed alike: $error, no such tool, skill or method.", ""),
    "volatile_argument": (
        "`$tool` gave the same result $count times to calls with nearly these arguments.",
        "Use the previous result, or change what is asked for.",
    ),
    "reworded": (
        "$count of the last calls of `$tool`, with other arguments, brought the same result or none.",
        "Try another source or a different question, or answer with what is there.",
    ),
    "empty": (
        "The last $count calls of `$tool` came back empty.",
        "If something is searched for, list or browse first, try another source, or say that it was not found.",
    ),
    "wait": (
        "This exact $tool call gave the same answer $count times.",
        "Wait longer before the next check (double the pause each time), or do something else meanwhile.",
    ),
}
ALIKE: Final = tuple(sorted(code.removeprefix(LOOPS) for code in failing.ALIKE))
"""Failures in a row, of which the kind of error tells what to do."""
ADVICE: Final[dict[ErrorType, str]] = {
    "auth": "Check the credentials, or ask the user for access.",
    "permission": "Ask for something that is allowed, or ask the user for access.",
    "rate_limit": "Wait before the next call.",
    "validation": "Check the arguments against the error and the tool's parameters.",
    "not_found": "Find out what is there (list, search, or ask the user) before the next call.",
    "conflict": "Look at the present state before the next call.",
    "precondition": "Do first what the error asks for.",
    "server_error": "Wait before the next call, go on without it, or tell the user.",
    "unavailable": "The service may be down: wait, go on without it, or tell the user.",
    "timeout": "Wait before the next call, or ask for less at once.",
    "connection": "The service may be down: check its address, wait, go on without it, or tell the user.",
    "tool_missing": "Choose one of those that are listed, or go on without.",
    "invalid_path": "Check the path: list the folder that it should be in.",
    "too_large": "Ask for less at once: a part, a page, a narrower question.",
}
"""By kind of failure. An exit code, an exception or an unknown kind may have any cause: no advice is true of all of them."""
REFUSED: Final = (
    "A call with a value that a result has shown since is let through; else use another tool, or tell the user."
)
"""The sentence that a refused call is told beside it."""


@lru_cache(maxsize=256)
def denial_of(
    pattern: str, tool: str, count: int, length: int, status: Status, error: ErrorType | None = None
) -> Denial:
    """
    Returns the refusal of a call of *tool* that goes on with *pattern*, found *count* times. The *length* is that of a
    cycle, *error* the kind of failures in a row.
    """
    message, hint, values = _said(pattern, tool, count, length, error)
    hint = f"{hint} {REFUSED}".lstrip() if pattern in ALIKE else hint
    return Denial(code=f"{LOOPS}{pattern}", status=status, message=message, hint=hint, values=values)


@lru_cache(maxsize=256)
def nudge_of(pattern: str, tool: str, count: int, length: int, error: ErrorType | None = None) -> Nudge:
    """
    Returns the same as a hint; the call runs.
    """
    message, hint, values = _said(pattern, tool, count, length, error)
    return Nudge(code=f"{LOOPS}{pattern}", hint=f"{message} {hint}".rstrip(), values=values)


def hints_of(
    nudges: Sequence[tuple[str, str]], pending: Pending | None, state: SessionState, repeating: tuple[str, ...]
) -> list[str]:
    """
    Returns the hints of *nudges*, (code, hint), for the envelope of the call of *pending*. That a loop brings nothing,
    by a code that begins as one of *repeating*, is not said beside something new.
    """
    if not nudges:
        return []
    silent = pending is not None and brought_news(state, pending.entry)
    return [hint for code, hint in nudges if not (silent and code.startswith(repeating))]


def tells(pattern: str, call: ToolCall) -> bool:
    """
    Returns whether *pattern* may tell how *call* will end. The results of other commands say nothing of it: they run
    other programs.
    """
    return pattern not in ("same_error", "reworded", "empty") or not runs_commands(call.tool, call.arguments)


def softened(denial: Denial) -> Nudge:
    """
    Returns the words of *denial*, as a hint.
    """
    said = denial.message if denial.ends_session or not denial.hint else f"{denial.message} {denial.hint}"
    return Nudge(code=denial.code, hint=said, values=denial.values)


def _said(
    pattern: str, tool: str, count: int, length: int, error: ErrorType | None
) -> tuple[str, str, dict[str, object]]:
    message, hint = WORDS[pattern]
    values: dict[str, object] = {"tool": tool, "count": count}
    if length:
        values["length"] = length
    if pattern in ALIKE:
        values["error"] = kind = error or "other"
        message, hint = message.replace("$error", kind), ADVICE.get(kind, hint)
    # The tool's name is the model's, and comes last.
    filled = message.replace("$count", str(count)).replace("$length", str(length)).replace("$tool", tool)
    return filled, hint, values
