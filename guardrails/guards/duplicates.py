"""
Refuse a call whose answer is already there.
"""

from typing import Annotated, Final, Literal

from annotated_types import Ge, Le

from ..state import Entry, SessionState
from ..types import Denial, ToolCall
from .base import Facts, Guard, Verdict, guard


IN_FLIGHT: Final = "duplicates.in_flight"


@guard
class Duplicates(Guard):
    """
    Deny an exact repeat (same tool, same canonical arguments) within the last *window* executed calls.

    `always` denies any repeat. `evidence` denies one only where it would bring nothing: the tool is declared stable
    and nothing was changed since, or the last two identical calls gave the same result. Under both, an identical call
    that still runs is denied at once, a retry that the last envelope allowed is let through, and polling tools are
    exempt.
    """

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
            return None if earlier[0].status == "expired" else _repeat(call, "window")
        if facts.tool.stable and earlier[0].status == "ok" and earlier[0].seq > state.changed_seq:
            return _repeat(call, "stable")
        if len(earlier) > 1 and same_evidence(earlier[0], earlier[1]):
            return _repeat(call, "evidence")
        return None


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


def _repeat(call: ToolCall, code: str) -> Denial:
    return Denial(
        code=f"duplicates.{code}",
        status="duplicate_call_blocked",
        message=(
            f"This exact {call.tool} call was already made earlier in this conversation. "
            "Use the previous result instead of calling again."
        ),
        hint="Use the previous result, change the arguments, or go on with the next step.",
    )
