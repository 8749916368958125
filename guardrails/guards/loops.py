"""
Tell a model that goes round in circles what to do instead, then refuse, then end it.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Gt, Le, MinLen

from ..repeats.features import KIND, RECENT, SAME, WAITS, Levels, levels
from ..repetition import patterns
from ..repetition.sketch import NO_SKETCH, sketch_of
from ..repetition.waiting import inspects, sleeps, waits
from ..repetition.work import settled
from ..retries.decision import TRANSIENT
from ..state import Entry, SessionState
from ..types import Denial, ErrorType, Status, ToolCall
from ..units import Duration
from .base import Codes, Facts, Guard, Verdict, guard
from .budget import FINISH
from .loop_words import WORDS, denial_of, learned_denial, learned_nudge, nudge_of


Count = Annotated[int, Ge(1), Le(200)]
RETRIES: Final = 2
"""Identical failures of a kind that may pass that do not count, where nothing else says how many retries there are."""
DOWN: Final[frozenset[ErrorType]] = frozenset({"connection", "unavailable"})
"""Of kinds that may pass those of which no other arguments know more; told, and never refused."""


@guard
class Loops(Guard):
    """
    Nudge, then deny calls that go on with a pattern that brings nothing; end the session only where denials are ignored.

    Each pattern has the number of calls (of a cycle: whole laps) from which on the next one is nudged, and denied; none
    switches it off. A changed result is progress, denied calls never count, calls of one turn are one, retries that the
    last envelope allowed are let through, and tools that wait for something are nudged only.
    """

    codes: ClassVar[Codes] = {
        **{f"loops.{name}": ("tool", "count") for name in WORDS if name != "cycle"},
        "loops.cycle": ("tool", "count", "length"),
        "loops.learned": ("tool", "percent"),
    }

    identical_nudge: Count | None = None
    identical_deny: Count | None = 2
    unrepaired_nudge: Count | None = None
    unrepaired_deny: Count | None = 1
    """Identical failures whose cause lies in the call, while nothing is done that could remove it."""
    reread_nudge: Count | None = 1
    reread_deny: Count | None = None
    """Equal answers of a read-only tool to the exact call, while nothing is done that could change them; to refuse the
    second asks for tools of which none hands out the next of something, or the time."""
    settled_for: Annotated[Duration, Gt(0)] | None = 60.0
    """Seconds after a call in which `unrepaired` and `reread` take it that nobody else changes anything; none: for ever."""
    cycle_nudge: Count | None = 2
    """Whole laps, of 2 to 5 calls."""
    cycle_deny: Count | None = 3
    same_error_nudge: Count | None = 3
    same_error_deny: Count | None = 6
    sibling_errors_nudge: Count | None = 3
    sibling_errors_deny: Count | None = 6
    unknown_tool_nudge: Count | None = 2
    unknown_tool_deny: Count | None = 3
    volatile_argument_nudge: Count | None = 2
    volatile_argument_deny: Count | None = 3
    reworded_nudge: Count | None = 3
    reworded_deny: Count | None = 6
    empty_nudge: Count | None = 4
    empty_deny: Count | None = 10
    wait_nudge: Count | None = 3
    final_after: Count | None = 3
    """Refused turns in a row after which a further denial ends the session; never where the host tells no turns."""
    model: Annotated[str, MinLen(1)] | None = None
    """A repeat model: `default`, the shipped one, or a file, relative to the policy file. None: plain rules only."""
    model_nudge: Annotated[float, Gt(0), Le(1)] | None = 0.8
    """Probability that a call brings nothing new from which on it is nudged; none: never."""
    model_deny: Annotated[float, Gt(0), Le(2)] | None = None
    """The same from which on the second of two identical calls is refused; none: as the model says, 2: never."""

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        repeated = call.sig in state.latest
        if not repeated and state.seq - state.dull_seq >= RECENT:
            return None
        if not repeated and self.model is None and patterns.lively(state, call.tool):
            return None
        if self.model is None and not repeated:
            return self._fresh(call, None, state)
        before = patterns.past(state)
        if not before:
            return None
        if self.model is None:
            return self._repeated(call, before, state, facts)
        # Taken first: its sketch is to be in the state whatever else is said.
        tool = facts.tool
        known = levels(call, before, state, read_only=tool.read_only or tool.stable, polling=tool.polling)
        said = self._repeated(call, before, state, facts) if repeated else self._fresh(call, before, state)
        if said is not None or known is None:
            return said
        last = next((entry for entry in before if entry.sig == call.sig), None) if repeated else None
        # A retry that the last envelope allowed is none of its business, nor is a command that waits.
        if last is not None and (last.retries_left > 0 or sleeps(call.arguments, call.tool)):
            return None
        return self._learned(call.tool, known)

    def _learned(self, tool: str, known: Levels) -> Verdict:
        from ..repeats.model_format import repeat_model

        model = repeat_model(self.model or "")
        p = model.probability(known)
        if known[KIND] == WAITS:
            return None
        if known[SAME] == 1 and p >= (model.deny_at if self.model_deny is None else self.model_deny):
            return learned_denial(tool, int(100 * p))
        return learned_nudge(tool, int(100 * p)) if self.model_nudge is not None and p >= self.model_nudge else None

    def _repeated(self, call: ToolCall, before: list[Entry], state: SessionState, facts: Facts) -> Verdict:
        last = next((entry for entry in before if entry.sig == call.sig), None)
        if last is None or call.sig is None:
            return None
        if last.sketch != NO_SKETCH:
            call.sketch = last.sketch
        else:
            sketch_of(call)
        if last.retries_left > 0:
            return None
        if facts.tool.polling or last.unfinished or waits(call.tool) or sleeps(call.arguments, call.tool):
            return self._graded("wait", patterns.same_answer(before, call.sig), self.wait_nudge, None, call, state)
        at_rest = self._settled(call, last, before, state, facts)
        if isinstance(at_rest, Denial):
            return at_rest
        said = self._graded(
            "identical",
            patterns.identical(before, call.sig) - (RETRIES if last.error_type in TRANSIENT else 0),
            self.identical_nudge,
            self.identical_deny,
            call,
            state,
            "duplicate_call_blocked",
        )
        if isinstance(said, Denial):
            return said
        length, count = patterns.laps(before, call.sig)
        if count and not any(entry.unfinished or waits(entry.tool) for entry in before[:length]):
            said = self._graded("cycle", count, self.cycle_nudge, self.cycle_deny, call, state, length=length) or said
        return said or at_rest or self._fresh(call, before, state)

    def _settled(self, call: ToolCall, last: Entry, before: list[Entry], state: SessionState, facts: Facts) -> Verdict:
        if last.error_type in patterns.DETERMINED:
            pattern, nudge, deny = "unrepaired", self.unrepaired_nudge, self.unrepaired_deny
        elif last.status == "ok" and (facts.tool.read_only or facts.tool.stable) and call.arguments:
            # Without arguments one asks for the next, or for what is there now.
            pattern, nudge, deny = "reread", self.reread_nudge, self.reread_deny
        else:
            return None
        if not settled(state, last, self.settled_for):
            return None
        count = patterns.same_answer(before, call.sig)
        return self._graded(pattern, count, nudge, deny, call, state, "duplicate_call_blocked")

    def _fresh(self, call: ToolCall, before: list[Entry] | None, state: SessionState) -> Verdict:
        tool = call.tool
        earlier = patterns.past_of(state, tool)
        last = next(earlier, None)
        if last is None or last.status == "error":
            before = patterns.past(state) if before is None else before
            return self._failing(call, before, state, last) if before else None
        if waits(tool):
            return None
        sketch = sketch_of(call)
        said: Verdict = None
        if last.sketch == sketch and not sleeps(call.arguments, tool):
            nudge, deny = self.volatile_argument_nudge, self.volatile_argument_deny
            count = patterns.unchanged([*patterns.past_of(state, tool)], sketch, call.sig)
            said = self._run_of("volatile_argument", count, nudge, deny, call, last, state)
        if said is not None or last.unfinished or inspects(tool):
            return said
        run = patterns.fruitless(last, earlier)
        nudge, deny = self.reworded_nudge, self.reworded_deny
        if (nudge is not None and len(run) >= nudge) or (deny is not None and len(run) >= deny):
            said = self._run_of("reworded", patterns.reworded(run, sketch, deny), nudge, deny, call, last, state)
        if said is None and last.empty:
            said = self._run_of("empty", len(run), self.empty_nudge, self.empty_deny, call, last, state)
        return said

    def _run_of(
        self,
        pattern: str,
        count: int,
        nudge: int | None,
        deny: int | None,
        call: ToolCall,
        last: Entry,
        state: SessionState,
    ) -> Verdict:
        if deny is not None and count >= deny and last.seq != state.seq and patterns.past(state)[0] is not last:
            # Another call since may have shown why: only an unbroken run is refused.
            deny = None
        return self._graded(pattern, count, nudge, deny, call, state)

    def _failing(self, call: ToolCall, before: list[Entry], state: SessionState, last: Entry | None) -> Verdict:
        tool = call.tool
        if last is not None and last.error_type == "tool_missing":
            count = patterns.unknown(before, tool)
            return self._graded("unknown_tool", count, self.unknown_tool_nudge, self.unknown_tool_deny, call, state)
        count, tools = patterns.sibling_errors(before, tool)
        if tools > 1:
            return self._graded(
                "sibling_errors", count, self.sibling_errors_nudge, self.sibling_errors_deny, call, state
            )
        if last is None or last.error_type in TRANSIENT - DOWN:
            # What passes by waiting is for `retryable` to judge.
            return None
        deny = None if before[0].tool != tool or last.error_type in TRANSIENT else self.same_error_deny
        return self._graded(
            "same_error", patterns.same_error(before, tool, call.sig), self.same_error_nudge, deny, call, state
        )

    def _graded(
        self,
        pattern: str,
        count: int,
        nudge: int | None,
        deny: int | None,
        call: ToolCall,
        state: SessionState,
        status: Status = "denied",
        *,
        length: int = 0,
    ) -> Verdict:
        if deny is not None and count >= deny:
            denial = denial_of(pattern, call.tool, count, length, status)
            if self.final_after is not None and state.refused >= self.final_after:
                return replace(denial, status="limit_reached", hint=FINISH, ends_session=True)
            return denial
        if nudge is not None and count >= nudge:
            return nudge_of(pattern, call.tool, count, length)
        return None
