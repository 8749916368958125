"""
Tell a model that goes round in circles what to do instead, then refuse; `denials` ends a session that ignores refusals.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise, takewhile
from typing import Annotated, Any, ClassVar, Final, TypedDict

from guardrails.core.envelope import Envelope
from guardrails.core.state import BRIEF, EMPTY, LITTLE, NEVER, UNFINISHED, Entry, SessionState
from guardrails.core.values.errors import LASTING, PASSING, WRONG
from guardrails.core.values.schema import Ge, Gt, Le
from guardrails.core.values.types import Denial, Nudge, Outcome, Status, ToolCall
from guardrails.core.values.units import Duration

from .base import Codes, Facts, Guard, Keys, Verdict, guard, map_of
from .denials import Denials
from .evidence import Evidence, again_of, brought_news, changed_seq, ended_alike, is_evidence, past, same_calls
from .similarity import same_but_numbers, same_words, sketch_of


Count = Annotated[int, Ge(1), Le(200)]


class FromCalls(TypedDict, total=False):
    """
    From how many calls on the next is nudged, or denied; none: never.
    """

    nudge: Count | None
    deny: Count | None


Grades = Annotated[FromCalls, Keys()]
MAX_CYCLE: Final = 5
"""Calls of the longest cycle that is looked for."""
WORDS: Final = {
    "unrepaired": "This exact {tool} call has failed, and no call since is known to have changed anything.",
    "reread": "This exact {tool} call was answered before, and no call since is known to have changed anything.",
    "identical": "The last {times} times, this exact {tool} call ended the same.",
    "done": "This exact {tool} call was accepted before, and was now accepted again.",
    "wait": "The last {count} times, this exact {tool} call gave the same answer.",
    "cycle": "The last {length} calls were made {count} times over, each time with the same results.",
    "same_error": "The last {count} calls of `{tool}` failed alike: {error}.",
    "reworded": "{count} of the last calls of `{tool}`, with other arguments, brought the same result or none.",
    "empty": "The last {count} calls of `{tool}` came back empty.",
}
"""What is told of each pattern."""
HINTS: Final = {
    "unrepaired": "Correct the arguments, or remove the cause and call again. If neither can be done, say so.",
    "reread": "Use the previous result, unless the answer changes by itself or goes on with each call.",
    "identical": "To learn more, change the arguments or call another tool.",
    "done": "If once was meant, undo one of the two or tell the user.",
    "wait": "Wait longer before the next check (double the pause each time), or do something else meanwhile.",
    "cycle": "To get on, make another call than these, or say what is missing.",
    "reworded": "Try another source or a different question, or answer with what is there.",
    "empty": "If something is searched for, list or browse first, try another source, or say that it was not found.",
}
"""The next step."""
CODES: Final = {"unrepaired": "same_error", "reread": "identical"}
"""Of patterns without a code of their own. One without a setting of its own, `reread`, has that of `identical`."""
EXACT: Final = ("unrepaired", "identical", "reread")
"""The words of repeats of one exact call."""
CHECK: Final = "Check the call against the error and the tool's parameters, or choose another tool."
"""Of failures that are refused; beside one that was not stands advice on it already."""


@guard
class Loops(Guard):
    """
    Nudge, then deny calls that go on with a pattern that brings nothing.

    Each pattern has the number of calls (whole laps of a cycle) from which on the next is nudged, and denied; none switches it off.
    A changed result is progress, denied calls never count, and calls of one turn are one. Retries that the last envelope allowed
    are let through. A wait is nudged only, and so is all that a shell runs but for the exact call and the exact lap.
    """

    codes: ClassVar[Codes] = {
        **{f"loops.{CODES.get(name, name)}": ("tool", "count") for name in WORDS},
        "loops.same_error": ("tool", "count", "error"),
        "loops.cycle": ("tool", "count", "length"),
    }

    wait: ClassVar[FromCalls] = {"nudge": 3, "deny": None}
    """Equal answers of what is waited for, or goes on by itself."""
    unrepaired: Grades = map_of(nudge=None, deny=1)
    """The exact call that failed for a cause that lies in it, while nothing is done that could remove it."""
    identical: Grades = map_of(nudge=1, deny=None)
    """The exact call that ended alike. `duplicates` refuses what is evidence; here the model is told."""
    cycle: Grades = map_of(nudge=2, deny=2)
    """Whole laps of 2 to 5 calls: refused if all failed alike or all are looks that showed the same, and no work is among them."""
    same_error: Grades = map_of(nudge=3, deny=6)
    """Failures in a row with one cause; refused only if the calls themselves are wrong, and nothing was looked up in between."""
    reworded: Grades = map_of(nudge=2, deny=5)
    """One question in other words, with the same answer or none; those count whose words were compared, from the second on."""
    empty: Grades = map_of(nudge=4, deny=None)
    """Looks of one tool in a row that found nothing."""
    settled_for: Annotated[Duration, Gt(0)] | None = 60.0
    """Seconds for which a result is believed to be still true, so that it may refuse the next call. None: for ever, even if
    things change by themselves."""

    def companions(self) -> tuple[Guard, ...]:
        return (Evidence(mode=self.mode), Denials(max_turns_in_a_row=None, mode=self.mode))

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if call.sig in state.latest:
            return self._repeat(call, state, facts)
        if facts.tool.repeats == "allow":
            return None
        calls = past(state, call.tool)
        latest = [*islice(calls, 2)]
        if latest and latest[0].status == "ok":
            others = len(latest) == 1 or not is_evidence(*latest)
            if latest[0].changes or (others and latest[0].came != EMPTY):
                # It worked, and changed something or brought other than the one before: each fresh call asks.
                return None
        run = run_of(chain(latest, calls), _most(self.same_error))
        judge = self._searching if run and run[0].status == "ok" else self._failing
        return judge(call, state, run, facts.tool.shell)

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> None:
        entry, tool = facts.entry, facts.tool
        if entry is None:
            return
        if facts.hints and brought_news(state, entry):
            # That a repeat brings nothing is not said beside something new.
            facts.hints = tuple(one for one in facts.hints if not one[0].startswith(f"{self.name}."))
        if entry.came == LITTLE and tool.read_only is False and tool.repeats != "allow":
            before = next((one for one in same_calls(state, entry.sig) if one.seq < entry.seq), entry)
            accepted = before.came == LITTLE and before.status == "ok" and before.seq > changed_seq(state)
            if accepted and before.result_hash != entry.result_hash:
                envelope.nudge(f"{WORDS['done'].format(tool=call.tool)} {HINTS['done']}")

    def _repeat(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        """
        Returns the verdict on the exact call, made again.
        """
        again = again_of(call, state, facts)
        if again is None or again.retry or not again.known or again.last.turn == (state.present.mark or -1):
            return None
        last, old = again.last, again.old
        goes_on = last.came == UNFINISHED or (last.came == LITTLE and not last.changes)
        if facts.tool.repeats == "allow" or goes_on or (again.moves and self.settled_for is not None):
            # No evidence, but for the advice to wait.
            return self._graded("wait", call, again.times(state, _most(self.wait)))
        near, verdict = self._is_settled(state.now_ms - last.at_ms), None
        if last.error_type in LASTING and near and not old and not _mended(state, last):
            verdict = self._graded("unrepaired", call, again.times(state, _most(self.unrepaired)))
        verdict = verdict or self._cycle(call, state, old)
        if verdict is not None or old or last.came == LITTLE or not near:
            return verdict
        # A look that showed something is worth a word at the second time; all else may be meant twice.
        twice = last.status != "ok" or last.changes
        times, pattern = again.times(state, _most(self.identical) + twice), "identical" if twice else "reread"
        return self._graded(pattern, call, times - twice, last.error_type not in PASSING, times=times)

    def _cycle(self, call: ToolCall, state: SessionState, old: bool) -> Verdict:
        """
        Returns the verdict on a call that goes on with whole laps of others.
        """
        calls = [*islice(past(state), MAX_CYCLE * (_most(self.cycle) or 2))]
        lap, count = laps(calls, call.sig)
        times = [state.now_ms, *[entry.at_ms for entry in lap]]
        if not count or not all(self._is_settled(later - sooner) for later, sooner in pairwise(times)):
            return None
        failed = all(entry.status == "error" and entry.error_type not in PASSING for entry in lap)
        looks = all(entry.status == "ok" and not entry.changes for entry in lap)
        return self._graded("cycle", call, count, (failed or looks) and not old, length=len(lap))

    def _searching(self, call: ToolCall, state: SessionState, run: list[Entry], shell: bool) -> Verdict:
        """
        Returns the verdict on a *run* of looks of one tool that brought the same, or nothing, newest first.
        """
        last, sketch = run[0], sketch_of(call.arguments)
        call.sketch = sketch
        refuse = last.seq == state.seq and self._is_settled(state.now_ms - last.at_ms) and not shell
        verdict = self._graded("reworded", call, sum(same_words(one.sketch, sketch) for one in run), refuse)
        if verdict is None and last.came == EMPTY:
            return self._graded("empty", call, len(run), refuse)
        if verdict is None and last.came != LITTLE:
            near = [one for one in run if same_but_numbers(one.sketch, sketch)]
            # One short answer may be true of many numbers; what differs in a moment only is one question.
            sure = last.came != BRIEF or all(one.sketch == sketch for one in near)
            verdict = self._graded("reworded", call, len(near), refuse and sure)
        return verdict

    def _failing(self, call: ToolCall, state: SessionState, run: list[Entry], shell: bool) -> Verdict:
        """
        Returns the verdict on a *run* of failures with one cause: those of the tool itself, else those of its server.
        """
        whose = call.tool
        if not run and (whose := whose.rpartition("__")[0]):
            run = run_of(past(state), _most(self.same_error))
        last = run[0] if run and run[0].status == "error" and run[0].steady else None
        if last is None or whose not in (call.tool, last.tool.rpartition("__")[0]):
            return None
        kind, unbroken = last.error_type, run[-1].seq == state.seq - len(run) + 1
        refuse = kind in WRONG and whose == call.tool and not shell and unbroken
        times = len({one.sig for one in run})
        return self._graded("same_error", call, times, refuse, tool=whose, error=kind or "other")

    def _is_settled(self, ms: int) -> bool:
        return ms <= 1_000 * (self.settled_for or NEVER)

    def _graded(self, pattern: str, call: ToolCall, count: int, refuse: bool = True, **values: object) -> Verdict:
        """
        Returns what the grades of *pattern* say of *count* calls.
        """
        grades: FromCalls = getattr(self, pattern, self.identical)
        nudge, deny = grades["nudge"], grades["deny"]
        denies = refuse and deny is not None and count >= deny
        if not denies and (nudge is None or count < nudge):
            return None
        values = {"tool": call.tool, "count": count, **values}
        code, text = f"loops.{CODES.get(pattern, pattern)}", WORDS[pattern].format(**values)
        hint = HINTS.get(pattern, "")
        if not denies:
            return Nudge(code=code, hint=f"{text} {hint}".rstrip(), values=values)
        status: Status = "duplicate_call_blocked" if pattern in EXACT else "denied"
        return Denial(code, text, hint or CHECK, status, values=values)


def _most(grades: FromCalls) -> int:
    """
    Returns the count from which on no more changes what *grades* say.
    """
    return max(grades["nudge"] or 0, grades["deny"] or 0)


def laps(before: Sequence[Entry], sig: int | None) -> tuple[Sequence[Entry], int]:
    """
    Returns (latest lap, whole laps) of the cycle of calls, each with its result, that *sig* would go on with; no laps without one.
    """
    for length in range(2, min(MAX_CYCLE, len(before) // 2) + 1):
        own = sum(entry.sig == sig for entry in before[:length])
        pairs = zip(before[length:], before, strict=False)
        again = sum(takewhile(bool, (_same(older, newer) for older, newer in pairs)))
        if 0 < own < length <= again:
            return before[:length], 1 + again // length
    return (), 0


def _same(one: Entry, other: Entry) -> bool:
    return one.sig == other.sig is not None and one.came != UNFINISHED and ended_alike(one, other)


def run_of(calls: Iterator[Entry], most: int) -> list[Entry]:
    """
    Returns the *calls*, newest first, that ended as the first of them did, up to one that did not: one of each turn, of failures *most*.
    """
    run = [*islice(calls, 1)]
    for one in calls:
        last = run[0]
        if last.status == "error":
            alike = one.status == "error" and one.steady == last.steady and len(run) < most
        else:
            alike = one.came == last.came if EMPTY in (one.came, last.came) else is_evidence(one, last)
        if not alike:
            break
        if one.turn != run[-1].turn or not one.turn:
            run.append(one)
    return run


def _mended(state: SessionState, last: Entry) -> bool:
    """
    Returns whether a look since may have renewed what a call that acts did not find, or just before may still be at work.
    """
    window = state.window if last.error_type == "not_found" else ()
    renewed = (one.seq > last.seq and last.changes and one.status == "ok" for one in window)
    worked = (one.worked and one.sig != last.sig and last.at_ms - one.at_ms <= 60_000 for one in window)
    return any(renewed) or any(worked)
