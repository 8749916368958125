"""
Refuse a call whose answer is already there.
"""

from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from guardrails.core.refusals import in_flight
from guardrails.core.state import UNFINISHED
from guardrails.core.values.errors import PASSING, REPAIRABLE
from guardrails.core.values.schema import Ge, Gt, Le
from guardrails.core.values.units import Duration

from .base import Codes, Denial, Entry, Facts, Guard, SessionState, ToolCall, Verdict, guard
from .evidence import Evidence, again_of, is_evidence, speak


@guard
class Duplicates(Guard):
    """
    Deny an exact repeat (same tool, same canonical arguments) within the last *window* executed calls.

    `always` denies any repeat, and says so if the earlier result may be outdated. `evidence` denies a repeat only if it would bring
    nothing new: the last two identical calls gave equal content, not long ago, and no work was done between them or since.
    An acknowledgement (`ok`), a wait and a result that was seen to change by itself are no evidence.

    Under both, an identical call that still runs is denied at once, and a retry that the last envelope allowed is let through. A
    tool's `repeats` goes before: `allow` exempts it from all of it, with `evidence` one equal call is enough, with `ask` a person decides.
    """

    codes: ClassVar[Codes] = {"duplicates.window": (), "duplicates.evidence": ()}

    window: Annotated[int, Ge(1), Le(200)] = 5
    rule: Literal["always", "evidence"] = "always"
    settled_for: Annotated[Duration, Gt(0)] | None = 60.0
    """Seconds that two equal results speak at most, under `evidence`; none: for ever, even if things change by themselves."""

    @property
    def remembers(self) -> int:
        return self.window

    def companions(self) -> tuple[Guard, ...]:
        return (Evidence(mode=self.mode),)

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if call.sig is None or facts.tool.repeats == "allow":
            return None
        if state.pending and any(pending.sig == call.sig for pending in state.pending.values()):
            return in_flight(call.tool)
        again = again_of(call, state, facts)
        if again is None or again.last.seq <= state.seq - self.window or facts.tool.repeats == "ask" or again.retry:
            return None
        last, before = again.last, again.before
        if self.rule == "always":
            passing = last.error_type in PASSING
            return None if _is_open(last, state) else _repeat(call.tool, "window", again.old, passing)
        if again.old or (again.moves and self.settled_for is not None):
            return None
        if facts.tool.repeats == "evidence" and last.status == "ok" and last.came != UNFINISHED:
            return _repeat(call.tool, "evidence")
        if before is None or before.seq <= max(state.seq - self.window, again.since):
            # There is none, or the user has spoken since: that says nothing of now.
            return None
        if facts.tool.read_only is False and last.status == "ok":
            # Work that was done may be meant once more: a key, a throw of dice, a payment. `repeats: ask` asks.
            return None
        if last.error_type in PASSING or not is_evidence(last, before) or (last.changes and _acts(state, last, before)):
            return None
        return _repeat(call.tool, "evidence") if speak(state, last, before, self.settled_for) else None


def _is_open(last: Entry, state: SessionState) -> bool:
    """
    Returns whether a call has no answer yet, or its failure may be over: another call was made since.
    """
    unknown = last.status == "expired" or last.error_type == "cancelled"
    return unknown or (last.seq < state.seq and last.error_type in REPAIRABLE | PASSING)


def _acts(state: SessionState, last: Entry, before: Entry) -> bool:
    """
    Returns whether looks around the latest of two equal calls show that it changes something.
    """
    looks = [one for one in state.window if one.seq > before.seq and one is not last and one.status == "ok"]
    shown = {one.sig: one.result_hash for one in looks if one.seq < last.seq}
    return any(shown.get(one.sig, one.result_hash) != one.result_hash for one in looks if one.seq > last.seq)


@lru_cache(maxsize=256)
def _repeat(tool: str, code: str, old: bool = False, passing: bool = False) -> Denial:
    """
    Returns the refusal of a repeat: of an *old* result, or of a failure that was *passing*.
    """
    call, details = f"This exact {tool} call", {"previous_result_outdated": True} if old else {}
    if passing:
        message = f"{call} failed for a cause that may pass, and may have happened, so it was not made again."
        hint = "Look whether it happened. Else try again later, use another tool, or tell the user what does not work."
        return Denial(f"duplicates.{code}", message, hint, details=details)
    message = f"{call} was already made earlier in this conversation."
    message += f" Use the previous result instead of calling again.{' A call made since may have changed it.' * old}"
    hint = "Use the previous result, change the arguments, or go on with the next step."
    return Denial(f"duplicates.{code}", message, hint, "duplicate_call_blocked", details=details)
