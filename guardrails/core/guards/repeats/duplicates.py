"""
Refuse a call whose answer is already there.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Annotated, ClassVar, Final, Literal

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.repetition.age import moves, speak
from guardrails.core.repetition.commands.waiting import waits, waits_itself
from guardrails.core.repetition.patterns import same_evidence
from guardrails.core.repetition.tool_names import once
from guardrails.core.repetition.work import outdated, shown_to_change
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Ge, Gt, Le
from guardrails.core.values.types import Denial, ErrorType, ToolCall
from guardrails.core.values.units import Duration


REPAIRABLE: Final[frozenset[ErrorType]] = frozenset({"precondition", "conflict", "exec_nonzero", "code_error"})
"""Kinds of failure after which the same call works once something else is done."""
LATER: Final = "Do something else and try again later, use another tool, or tell the user what does not work."


@guard
class Duplicates(Guard):
    """
    Deny an exact repeat (same tool, same canonical arguments) within the last *window* executed calls.

    `always` denies any repeat, and says so if the earlier result may be outdated. `evidence` denies a repeat only if it
    would bring nothing new. Either the tool is declared stable, or the last two identical calls gave the same result,
    not long ago. A call that may have changed something, made since, frees the repeat. A result that was seen to change
    by itself is never evidence.

    Under both, an identical call that still runs is denied at once, and polling tools are exempt. A retry that the last
    envelope allowed is let through. A call that failed for a repairable cause may be repeated after another call. Under
    `evidence`, calls that wait by their name, their arguments or their last result are exempt too.
    """

    codes: ClassVar[Codes] = {
        "duplicates.window": (),
        "duplicates.stable": (),
        "duplicates.evidence": (),
        "duplicates.in_flight": (),
    }
    scope_settings: ClassVar[tuple[str, ...] | None] = ()

    window: Annotated[int, Ge(1), Le(200)] = 5
    rule: Literal["always", "evidence"] = "always"
    settled_for: Annotated[Duration, Gt(0)] | None = 60.0
    """Seconds that two equal results speak at most, under `evidence`; none: for ever, even if things change by themselves."""

    @property
    def remembers(self) -> int:
        return self.window

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        if call.sig is None:
            return None
        if state.pending and any(pending.sig == call.sig for pending in state.pending.values()):
            return in_flight(call)
        if facts.tool.polling:
            return None
        earlier = state.earlier(call.sig, self.window)
        if not earlier or _may_retry(earlier[0], facts.now_ms):
            return None
        if self.rule == "always":
            if _worth_again(earlier[0], state, facts.tool):
                return None
            if _unknown(earlier[0], facts.tool):
                return _unchecked(call.tool)
            return _again(call.tool, "window", earlier[0], outdated(state, earlier[0]))
        if moves(state, earlier[0], self.settled_for):
            return None
        if facts.tool.stable and earlier[0].status == "ok" and not outdated(state, earlier[0]):
            return _repeat(call.tool, "stable")
        if len(earlier) < 2 or not same_evidence(earlier[0], earlier[1]):
            return None
        if not speak(state, earlier[0], earlier[1], self.settled_for):
            return None
        if earlier[0].unfinished or waits(call.tool) or waits_itself(call):
            return None
        if outdated(state, earlier[0]):
            return None
        since = [entry for entry in state.window if entry.seq > earlier[0].seq]
        between = [entry for entry in state.window if earlier[1].seq < entry.seq < earlier[0].seq]
        if earlier[0].changes and shown_to_change(since, between):
            return None
        return _again(call.tool, "evidence", earlier[0])


def _worth_again(last: Entry, state: SessionState, tool: Tool) -> bool:
    """
    Returns whether a call has no answer yet, or work done since may have removed or checked the cause of its failure.
    """
    if last.status == "expired" or last.error_type == "cancelled":
        return True
    return last.seq < state.seq and (last.error_type in REPAIRABLE or _unknown(last, tool))


def _unknown(last: Entry, tool: Tool) -> bool:
    """
    Returns whether *last* may have happened though it failed, and is not to be made again unseen.
    """
    return last.error_type in ("timeout", "connection") and once(tool)


def _unchecked(tool: str) -> Denial:
    return Denial(
        code="duplicates.window",
        message=f"The last {tool} call like this may have happened, so it was not made again.",
        hint="Check whether it did, then make it if it did not, or ask the user.",
    )


def _may_retry(last: Entry, now_ms: int) -> bool:
    """
    Returns whether *last* failed and the same call is another try: as advised, or by itself if nobody judges
    failures.
    """
    return last.retries_left > 0 or last.due(now_ms)


def _again(tool: str, code: str, last: Entry, old: bool = False) -> Denial:
    return still_failing(_repeat(tool, code), tool) if last.error_type in TRANSIENT else _repeat(tool, code, old)


def still_failing(said: Denial, tool: str) -> Denial:
    """
    Returns *said* of a call that failed for a cause that may pass: there is no result to be used, nor given again.
    """
    message = f"This exact {tool} call failed again and again for a cause that may pass, so it was not made."
    if said.ends_session:
        return replace(said, message=message)
    return replace(said, status="denied", message=message, hint=LATER)


def in_flight(call: ToolCall) -> Denial:
    """
    Returns the refusal of a call that is running already.
    """
    return Denial(
        code="duplicates.in_flight",
        status="duplicate_call_blocked",
        message=f"This exact {call.tool} call is still running. Its result comes with the first call.",
        hint="Wait for that result.",
        running=True,
    )


@lru_cache(maxsize=256)
def _repeat(tool: str, code: str, old: bool = False) -> Denial:
    # Most denials are this one; making it anew would be a tenth of what a refused call costs.
    message = (
        f"This exact {tool} call was already made earlier in this conversation. "
        "Use the previous result instead of calling again."
    )
    return Denial(
        code=f"duplicates.{code}",
        status="duplicate_call_blocked",
        message=f"{message} A call made since may have changed it." if old else message,
        hint="Use the previous result, change the arguments, or go on with the next step.",
        details={"previous_result_outdated": True} if old else {},
    )
