"""
What `Loops` says of each pattern: the message, the next step, and the denial or nudge that carries them.
"""

from functools import lru_cache
from typing import Final

from ..types import Denial, Nudge, Status


WORDS: Final[dict[str, tuple[str, str]]] = {
    "identical": (
        "This exact $tool call gave the same result $count times.",
        "Use the previous result; to learn more, change the arguments or call another tool.",
    ),
    "unrepaired": (
        "This exact $tool call has just failed, and nothing was done since that could help it.",
        "Correct the arguments, or remove the cause and call again. Where neither can be done, say so.",
    ),
    "reread": (
        "This exact $tool call was just answered, and nothing was done since that could change the answer.",
        "Use the previous result. Where it may change by itself, wait before you look again.",
    ),
    "cycle": (
        "The last $length calls were made $count times over, each time with the same results.",
        "Leave this cycle: say what is missing, then take a step that none of these calls is.",
    ),
    "same_error": (
        "`$tool` failed $count times in a row with the same error, whatever the arguments.",
        "Arguments are not the cause. Read the error: wait, look the right values up with another tool, or ask the user.",
    ),
    "sibling_errors": (
        "The last $count calls of several tools failed with one and the same error.",
        "The cause is common to them: repair it, tell the user, or go on without these tools.",
    ),
    "unknown_tool": (
        "There is no tool `$tool`; it was called $count times.",
        "Choose one of the tools that are listed, or answer without.",
    ),
    "volatile_argument": (
        "`$tool` gave the same result $count times; only an id, a time or a label of the call was new.",
        "Use the previous result, or change what is asked for.",
    ),
    "reworded": (
        "$count calls of `$tool` worded like this one brought nothing new.",
        "Rewording does not help. Try another source or a broader question, or answer with what is there.",
    ),
    "empty": (
        "The last $count calls of `$tool` came back empty.",
        "Check that what is searched for exists: list or browse first, try another source, or say it was not found.",
    ),
    "wait": (
        "Nothing has changed in $count checks by `$tool`.",
        "Wait longer before the next check (double the pause each time), or do something else meanwhile.",
    ),
}
_LEARNED: Final = (
    "By what this session did before, this `$tool` call will bring nothing new ($percent % sure).",
    "Use the result that is there; to learn more, change what is asked for or call another tool.",
)


@lru_cache(maxsize=256)
def denial_of(pattern: str, tool: str, count: int, length: int, status: Status) -> Denial:
    """
    The refusal of a call of *tool* that goes on with *pattern*, found *count* times; *length* is a cycle's.
    """
    message, hint, values = _said(pattern, tool, count, length)
    return Denial(code=f"loops.{pattern}", status=status, message=message, hint=hint, values=values)


@lru_cache(maxsize=256)
def nudge_of(pattern: str, tool: str, count: int, length: int) -> Nudge:
    """
    The same as a hint; the call runs.
    """
    message, hint, values = _said(pattern, tool, count, length)
    return Nudge(code=f"loops.{pattern}", hint=f"{message} {hint}", values=values)


def softened(denial: Denial) -> Nudge:
    """
    What *denial* says, as a hint.
    """
    tool, count = denial.values["tool"], denial.values["count"]
    return nudge_of(denial.code.removeprefix("loops."), str(tool), int(str(count)), 0)


@lru_cache(maxsize=256)
def learned_denial(tool: str, percent: int) -> Denial:
    """
    The refusal by a model that is *percent* sure.
    """
    message, hint = _LEARNED
    values = {"tool": tool, "percent": percent}
    said = message.replace("$percent", str(percent)).replace("$tool", tool)
    return Denial(code="loops.learned", status="duplicate_call_blocked", message=said, hint=hint, values=values)


@lru_cache(maxsize=256)
def learned_nudge(tool: str, percent: int) -> Nudge:
    """
    The same as a hint; the call runs.
    """
    denial = learned_denial(tool, percent)
    return Nudge(code=denial.code, hint=f"{denial.message} {denial.hint}", values=dict(denial.values))


def _said(pattern: str, tool: str, count: int, length: int) -> tuple[str, str, dict[str, object]]:
    message, hint = WORDS[pattern]
    values: dict[str, object] = {"tool": tool, "count": count}
    if length:
        values["length"] = length
    # The tool's name is the model's, and comes last.
    filled = message.replace("$count", str(count)).replace("$length", str(length)).replace("$tool", tool)
    return filled, hint, values
