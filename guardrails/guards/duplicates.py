"""
Refuse a call whose answer is already there.
"""

from functools import lru_cache
from typing import Annotated, ClassVar, Final, Literal

from annotated_types import Ge, Le

from ..repetition.waiting import sleeps, waits
from ..repetition.work import shown_to_change, worked_on
from ..state import Entry, SessionState
from ..types import Denial, ErrorType, ToolCall
from .base import Codes, Facts, Guard, Verdict, guard


IN_FLIGHT: Final = "duplicates.in_flight"
REPAIRABLE: Final[frozenset[ErrorType]] = frozenset({"precondition", "conflict", "exec_nonzero", "code_error"})
"""Kinds of failure after which the same call works once something else is done."""


@guard
class Duplicates(Guard):
    """
    Deny an exact repeat (same tool, same canonical arguments) within the last *window* executed calls.

    `always` denies any repeat. `evidence` denies one only where it would bring nothing: the tool is declared stable
    and nothing was changed since, or the last two identical calls gave the same result, unless another call of a tool that
    is not known to be read-only was made before each of them and since (an edit-test cycle). Under both, an identical call
    that still runs is denied at once, a retry that the last envelope allowed is let through, what failed for a repairable
    cause may be repeated after another call, and polling tools are exempt; under `evidence` also what waits by its name, its
    arguments or its last result.
    """

    codes: ClassVar[Codes] = {
        "duplicates.window": (),
        "duplicates.stable": (),
        "duplicates.evidence": (),
        IN_FLIGHT: (),
    }

    window: Annotated[int, Ge(1), Le(200)] = 5
    rule: Literal["always", "evidence"] = "always"

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
        if not earlier or earlier[0].retries_left > 0:
            return None
        if self.rule == "always":
            return None if _worth_again(earlier[0], state) else _repeat(call.tool, "window")
        if facts.tool.stable and earlier[0].status == "ok" and earlier[0].seq > state.changed_seq:
            return _repeat(call.tool, "stable")
        if len(earlier) < 2 or not same_evidence(earlier[0], earlier[1]):
            return None
        if earlier[0].unfinished or waits(call.tool) or sleeps(call.arguments, call.tool):
            return None
        since = [entry for entry in state.window if entry.seq > earlier[0].seq]
        between = [entry for entry in state.window if earlier[1].seq < entry.seq < earlier[0].seq]
        if worked_on(since, call.sig) and worked_on(between, call.sig):
            # Work, look, work, look: whoever builds or tests after each change is not in a loop.
            return None
        if earlier[0].changes and shown_to_change(since, between):
            return None
        return _repeat(call.tool, "evidence")


def _worth_again(last: Entry, state: SessionState) -> bool:
    """
    Whether a call has no answer yet, or failed for a cause that something done since may have removed.
    """
    if last.status == "expired" or last.error_type == "cancelled":
        return True
    return last.error_type in REPAIRABLE and last.seq < state.seq


def same_evidence(a: Entry, b: Entry) -> bool:
    """
    Whether two calls ended alike: byte-equal results of two successes, equal but for digits of two failures.
    """
    return a.status == b.status and a.status in ("ok", "error") and a.result_hash == b.result_hash


def in_flight(call: ToolCall) -> Denial:
    """
    The refusal of a call that is running already.
    """
    return Denial(
        code=IN_FLIGHT,
        status="duplicate_call_blocked",
        message=f"This exact {call.tool} call is still running. Its result comes with the first call.",
        hint="Wait for that result.",
    )


@lru_cache(maxsize=256)
def _repeat(tool: str, code: str) -> Denial:
    # Most denials are this one; making it anew would be a tenth of what a refused call costs.
    return Denial(
        code=f"duplicates.{code}",
        status="duplicate_call_blocked",
        message=(
            f"This exact {tool} call was already made earlier in this conversation. "
            "Use the previous result instead of calling again."
        ),
        hint="Use the previous result, change the arguments, or go on with the next step.",
    )
