"""
Tell a model that goes round in circles what to do instead, then refuse, then end it.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Final, TypedDict

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard, latest
from guardrails.core.guards.limits.budget_words import FINISH
from guardrails.core.guards.settings import Keys, map_of
from guardrails.core.repetition import cycles, patterns
from guardrails.core.repetition.age import SLOW, moves, recent, shown_to_move, speak
from guardrails.core.repetition.commands.waiting import inspects, waits, waits_itself
from guardrails.core.repetition.sketch import NO_SKETCH, labelled, placed, sketch_of, worded
from guardrails.core.repetition.work import outdated, settled
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.state.failing import Failing, brings_new, spared
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.values.bounds import Ge, Gt, Le
from guardrails.core.values.types import Denial, ErrorType, Status, ToolCall
from guardrails.core.values.units import Duration

from .duplicates import still_failing
from .loop_words import ALIKE, WORDS, denial_of, nudge_of, softened, tells


Count = Annotated[int, Ge(1), Le(200)]
SPELLINGS: Final[dict[str, str]] = {
    **{f"{name}_{grade}": f"{name}.{grade}" for name in WORDS for grade in ("nudge", "deny") if name != "wait"},
    "wait_nudge": "wait.nudge",
}
"""By the old one; each is still read."""


class FromCalls(TypedDict, total=False):
    """
    From how many calls on the next is nudged, or denied; none: never.
    """

    nudge: Count | None
    deny: Count | None


class ToldFromCalls(TypedDict, total=False):
    """
    From how many calls on the next is nudged; none: never.
    """

    nudge: Count | None


Grades = Annotated[FromCalls, Keys()]
Waits = Annotated[ToldFromCalls, Keys()]


RECENT: Final = 6
"""A call that is no exact repeat is looked at where one of so many before it was dull."""
RETRIES: Final = 2
"""Identical failures of a kind that may pass that do not count, where nothing else says how many retries there are."""
DOWN: Final[frozenset[ErrorType]] = frozenset({"connection", "unavailable"})
"""Of kinds that may pass those of which no other arguments know more; told, and never refused."""


@guard
class Loops(Guard):
    """
    Nudge, then deny calls that go on with a pattern that brings nothing. The session ends only if denials are ignored.

    Each pattern has the number of calls (whole laps of a cycle) from which on the next is nudged, and denied; none
    switches it off. A changed result is progress, denied calls never count, and calls of one turn are one. Retries that
    the last envelope allowed are let through. Tools that wait for something are nudged only.
    """

    codes: ClassVar[Codes] = {
        **{f"loops.{name}": ("tool", "count") for name in WORDS if name != "cycle"},
        **{f"loops.{name}": ("tool", "count", "error") for name in ALIKE},
        "loops.cycle": ("tool", "count", "length"),
    }
    scope_settings: ClassVar[tuple[str, ...] | None] = ()
    nudges_repeats: ClassVar[bool] = True

    aliases: ClassVar[dict[str, str]] = SPELLINGS

    identical: Grades = map_of(nudge=None, deny=2)
    unrepaired: Grades = map_of(nudge=None, deny=1)
    """Identical failures whose cause lies in the call, while nothing is done that could remove it."""
    reread: Grades = map_of(nudge=1, deny=None)
    """Equal answers of a read-only tool to the exact call, while nothing is done that could change them. The second is
    refused only if no tool hands out the next of something, or the time."""
    settled_for: Annotated[Duration, Gt(0)] | None = 60.0
    """Seconds for which a result is believed to be still true, so that it may refuse the next call. None: for ever, even if things
    change by themselves."""
    cycle: Grades = map_of(nudge=2, deny=3)
    """Whole laps, of 2 to 5 calls."""
    same_error: Grades = map_of(nudge=3, deny=6)
    sibling_errors: Grades = map_of(nudge=3, deny=6)
    unknown_tool: Grades = map_of(nudge=2, deny=3)
    volatile_argument: Grades = map_of(nudge=2, deny=3)
    reworded: Grades = map_of(nudge=3, deny=6)
    empty: Grades = map_of(nudge=4, deny=10)
    wait: Waits = map_of(nudge=3)
    final_after: Count | None = 3
    """Turns in a row that only repeated refused calls. One more denial of that kind ends the session. It never does if the host
    tells no turns."""

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        if call.sig in state.latest:
            before = patterns.past(state)
            return self._repeated(call, before, state, facts) if before else None
        if state.seq - state.dull_seq >= RECENT or patterns.lively(state, call.tool):
            return None
        return self._fresh(call, None, state)

    def _repeated(self, call: ToolCall, before: list[Entry], state: SessionState, facts: Facts) -> Verdict:
        last = next((entry for entry in before if entry.sig == call.sig), None)
        if last is None or call.sig is None:
            return None
        if last.sketch != NO_SKETCH:
            call.note_sketch(last.sketch)
        else:
            sketch_of(call)
        if last.advised or last.due(facts.now_ms):
            # As advised, or after the wait that nobody's advice is taken for.
            return None
        waiting = facts.tool.polling or last.unfinished or waits(call.tool) or waits_itself(call)
        if waiting or moves(state, last, self.settled_for):
            return self._graded("wait", patterns.same_answer(before, call.sig), call, state)
        at_rest = self._settled(call, last, before, state, facts)
        if isinstance(at_rest, Denial):
            return at_rest
        old = outdated(state, latest(state, call.sig) or last)
        said = None if old else self._identical(call, last, before, state)
        if isinstance(said, Denial):
            return still_failing(said, call.tool) if last.error_type in TRANSIENT else said
        said = self._cycle(call, before, state) or said or at_rest or self._fresh(call, before, state)
        # Work was done since: what went before is worth a word, and no refusal but that of the work itself.
        return softened(said) if old and isinstance(said, Denial) and said.code != "loops.cycle" else said

    def _identical(self, call: ToolCall, last: Entry, before: list[Entry], state: SessionState) -> Verdict:
        count = patterns.identical(before, call.sig) - (RETRIES if last.error_type in TRANSIENT else 0)
        said = self._graded("identical", count, call, state, status="duplicate_call_blocked")
        if isinstance(said, Denial):
            own = [entry for entry in before if entry.sig == call.sig][:2]
            if not speak(state, own[0], own[-1], self.settled_for):
                # A look this late is a new one.
                told = recent(state, last, self.settled_for, times=SLOW)
                return self._graded("wait", patterns.same_answer(before, call.sig), call, state) if told else None
        return said

    def _cycle(self, call: ToolCall, before: list[Entry], state: SessionState) -> Verdict:
        length, count = cycles.laps(before, call.sig)
        if not count or any(entry.unfinished or waits(entry.tool) for entry in before[:length]):
            return None
        deny = self.cycle["deny"]
        # What may look at the work of the others is let through: that was done since.
        paused = 0 if self.settled_for is None else cycles.paused_s(before, state.now_ms, length) / self.settled_for
        refuse = deny is not None and count >= deny and paused <= 1 and cycles.in_vain(before, call.sig, length, deny)
        return None if paused > SLOW else self._graded("cycle", count, call, state, refuse=refuse, length=length)

    def _settled(self, call: ToolCall, last: Entry, before: list[Entry], state: SessionState, facts: Facts) -> Verdict:
        if last.error_type in patterns.DETERMINED and not last.little:
            pattern = "unrepaired"
        elif last.status == "ok" and (facts.tool.read_only or facts.tool.stable) and call.arguments:
            # Without arguments one asks for the next, or for what is there now.
            pattern = "reread"
        else:
            return None
        if not settled(state, last, self.settled_for):
            return None
        count = patterns.same_answer(before, call.sig)
        return self._graded(pattern, count, call, state, status="duplicate_call_blocked")

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
        # But for why or when it is asked, it is one question; a clock or an id may be of another.
        same = last.sketch == sketch and (labelled(sketch) or not (last.little or last.empty))
        if same and not waits_itself(call):
            own = [*patterns.past_of(state, tool)]
            count = patterns.unchanged(own, sketch, call.sig)
            said = self._run_of("volatile_argument", count, call, last, state)
            if isinstance(said, Denial) and self.settled_for is not None and shown_to_move(own, sketch):
                said = softened(said)
        if said is not None or last.unfinished or inspects(tool):
            return said
        if last.changes and not last.empty:
            # It may be asked for, so it is told of only.
            name, count = cycles.vain(patterns.past(state), call)
            return self._graded(name, count, call, state, refuse=False, length=2 * (name == "cycle"))
        run = patterns.fruitless(last, earlier)
        scan = patterns.scans(run)
        if scan and not last.empty:
            return None
        nudge, deny = self.reworded["nudge"], self.reworded["deny"]
        if (nudge is not None and len(run) >= nudge) or (deny is not None and len(run) >= deny):
            # Of many things that are asked for there may be none, and many files say the same; of one question, worded anew,
            # there is no answer.
            refuse = not scan and worded(sketch) if last.empty else not placed(sketch)
            said = self._run_of("reworded", patterns.reworded(run, sketch, deny), call, last, state, refuse=refuse)
            if said is None and not last.empty and deny is not None and len(run) >= deny:
                # So much, whatever it was asked for: nobody can say of arguments that are unlike that they ask the same.
                said = self._run_of("reworded", len(run), call, last, state, refuse=False)
        if last.empty and not isinstance(said, Denial):
            late = self._run_of("empty", len(run), call, last, state, refuse=not scan)
            said = late if said is None or isinstance(late, Denial) else said
        return said

    def _run_of(
        self, pattern: str, count: int, call: ToolCall, last: Entry, state: SessionState, *, refuse: bool = True
    ) -> Verdict:
        said = self._graded(pattern, count, call, state, refuse=refuse)
        if call.sig in state.latest and not recent(state, last, self.settled_for, times=SLOW):
            return None
        if isinstance(said, Denial):
            # Another call since may have shown why, or done something: only an unbroken run is refused.
            unbroken = last.seq == state.seq or (patterns.past(state)[0] is last and not outdated(state, last))
            refuse = unbroken and recent(state, last, self.settled_for)
            said = self._graded(pattern, count, call, state, refuse=refuse)
        return None if said is None or patterns.broken(state, last, {call.tool}) else said

    def _failing(self, call: ToolCall, before: list[Entry], state: SessionState, last: Entry | None) -> Verdict:
        tool = call.tool
        if last is not None and last.error_type == "tool_missing":
            return self._alike("unknown_tool", patterns.unknown(before, tool), call, state, last, tools={tool})
        count, tools = patterns.sibling_errors(before, tool)
        if tools:
            refuse = not patterns.answers(before[0])
            return self._alike("sibling_errors", count, call, state, before[0], tools=tools, refuse=refuse)
        if last is None or last.error_type in TRANSIENT - DOWN:
            # What passes by waiting is for `retryable` to judge.
            return None
        refuse = before[0].tool == tool and last.error_type not in TRANSIENT and not patterns.answers(last)
        count = patterns.same_error(before, tool, call.sig)
        return self._alike("same_error", count, call, state, last, tools={tool}, refuse=refuse)

    def _alike(
        self,
        pattern: str,
        count: int,
        call: ToolCall,
        state: SessionState,
        last: Entry,
        *,
        tools: set[str],
        refuse: bool = True,
    ) -> Verdict:
        """
        Returns the verdict on *count* failures of *tools* like the *last*; None for a call that brings something new.
        """
        refuse = refuse and recent(state, last, self.settled_for)
        said = self._graded(pattern, count, call, state, refuse=refuse, error=last.error_type)
        if said is None or patterns.broken(state, last, tools):
            return None
        followed: list[Failing] = [state.failing[name] for name in tools if name in state.failing]
        if brings_new(call, followed):
            return None
        if call.sig not in state.latest and spared(call, followed):
            return self._graded(pattern, count, call, state, refuse=False, error=last.error_type)
        return said

    def _graded(
        self,
        pattern: str,
        count: int,
        call: ToolCall,
        state: SessionState,
        *,
        refuse: bool = True,
        status: Status = "denied",
        length: int = 0,
        error: ErrorType | None = None,
    ) -> Verdict:
        grades: FromCalls = getattr(self, pattern)
        nudge, deny = grades["nudge"], grades.get("deny") if refuse and tells(pattern, call) else None
        if deny is not None and count >= deny:
            denial = denial_of(pattern, call.tool, count, length, status, error)
            if self._final(call, state):
                return replace(denial, status="limit_reached", hint=FINISH, ends_session=True)
            return denial
        if nudge is not None and count >= nudge:
            return nudge_of(pattern, call.tool, count, length, error)
        return None

    def _final(self, call: ToolCall, state: SessionState) -> bool:
        """
        Returns whether a further refusal of *call* ends the session: refusals of it were ignored, turn after turn.
        """
        after = self.final_after
        return after is not None and state.turn > 0 and state.denied_turns >= after and state.refused_before(call.sig)
