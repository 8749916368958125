"""
Count recorded calls by tool: a pure step for each call, in bounded memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from guardrails.core.guards.duplicates import REPAIRABLE
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import micro_dollars
from guardrails.offline.judge.evidence import SUCCESS, Worth, evidence_of, outcome_of_call
from guardrails.offline.readers.base import RecordedCall
from guardrails.offline.readers.same_call import signature_of

from .looping import count_loop
from .names import named_to_read
from .rules import changed, count_retry, count_rules, refused_by_evidence
from .signals import signal_of
from .tally import MAX_DURATION_MS, NEWS, REFUSED, Tally
from .trail import Done, Trail


MAX_SESSIONS: Final = 20_000
"""Sessions that are open at once; the one that was idle for longest begins anew, should it go on."""
MAX_CODES: Final = 100
"""Codes of denials that are told apart for one tool; a record may hold any."""
OTHER_CODES: Final = "all others"
MAX_COST_USD: Final = 1e9
WRONG: Final = frozenset({"validation", "invalid_path", REFUSED})
"""Errors that the model can correct by other arguments."""
REPEATS: Final = ("duplicates.", "loops.")
SAME: Final = ("duplicates.", *(f"loops.{name}" for name in ("identical", "unrepaired", "reread", "cycle")))
"""Of them, those for the same tool and arguments; the others are for going on with other ones."""
MAX_NAMES: Final = 1_000
"""Sources that are named; tools and calls that one session remembers."""

Declared = Callable[[str], Tool]
"""What is declared of a tool, by its name."""


@dataclass(slots=True)
class Quality:
    """
    The figures of all tools, and the state they are counted with. *declared* says which tools poll or change nothing.
    """

    declared: Declared
    tallies: dict[str, Tally] = field(default_factory=dict)
    calls: int = 0
    sessions: int = 0
    forgotten: int = 0
    """Sessions that were put out of memory."""
    model_cost: int = 0
    """Of the model responses, micro-dollars."""
    sources: set[str] = field(default_factory=set)
    trails: dict[tuple[str, str, str], Trail] = field(default_factory=dict)

    def count(self, call: RecordedCall) -> None:
        """
        Add the next call of its session.
        """
        trail = self._trail(call)
        tally = self._tally(call.tool)
        tool = self.declared(call.tool)
        trail.number += 1
        self.calls += 1
        tally.calls += 1
        if call.tool not in trail.tools and len(trail.tools) < MAX_NAMES:
            trail.tools.add(call.tool)
            tally.sessions += 1
        if call.cost_usd is not None and 0 < call.cost_usd < MAX_COST_USD:
            self.model_cost += micro_dollars(call.cost_usd)
        sig = signature_of(call)
        if call.decision == "deny":
            _count_denied(tally, trail, call, sig)
        else:
            _count_run(self.tallies, tally, trail, call, sig, tool)

    def _trail(self, call: RecordedCall) -> Trail:
        key = (call.source, call.session_id, call.run)
        trail = self.trails.pop(key, None)
        if trail is None:
            self.sessions += 1
            if len(self.sources) < MAX_NAMES:
                self.sources.add(call.source)
            if len(self.trails) >= MAX_SESSIONS:
                del self.trails[next(iter(self.trails))]
                self.forgotten += 1
            trail = Trail()
        # Put last: the first is then the one that was idle for longest.
        self.trails[key] = trail
        return trail

    def _tally(self, tool: str) -> Tally:
        tally = self.tallies.get(tool)
        if tally is None:
            tally = self.tallies[tool] = Tally(tool)
        return tally


def _count_denied(tally: Tally, trail: Trail, call: RecordedCall, sig: int | None) -> None:
    """
    A call that did not run: it is no evidence for what follows.
    """
    code = call.code or "unknown"
    tally.denied[code if code in tally.denied or len(tally.denied) < MAX_CODES else OTHER_CODES] += 1
    idle = code.startswith(REPEATS)
    if idle:
        place = trail.latest(sig)
        if code.startswith(SAME):
            tally.refused_repeats += 1
            failing = place is not None and trail.done[place].error is not None
            tally.refused_failures += failing
            tally.idle_failures += failing
        else:
            tally.refused_stuck += 1
        tally.wasted += 1
        if sig in trail.steady:
            # Nobody knows what it would have brought.
            trail.steady.discard(sig)
            tally.polls.n -= 1
    elif code.startswith("validation."):
        tally.errors[REFUSED] += 1
        tally.corrections.n += 1
        tally.wasted += 1
        trail.went_wrong(call.tool, sig)
    count_loop(tally, trail, call, sig, idle=idle)


def _count_run(
    tallies: dict[str, Tally], tally: Tally, trail: Trail, call: RecordedCall, sig: int | None, tool: Tool
) -> None:
    outcome = outcome_of_call(call, tool) if call.has_result else SUCCESS
    error = outcome.error_type
    worked = call.has_result and error is None
    evidence = evidence_of(call, error is not None)
    polling = tool.repeats == "allow" or call.polling
    place = trail.latest(sig)
    since = [] if place is None else trail.done[place + 1 :]
    latest = None if place is None else trail.done[place]
    worth = trail.past.add(sig, evidence)
    if latest is not None:
        now = Now(call.tool, sig, worked, polling, known=call.has_result)
        _count_repeat(tallies, trail, worth, latest, since, tally=tally, now=now)
    if trail.wrong and trail.correction(call.tool, sig):
        # It is counted for the tool that went wrong, which is this one.
        tally.corrections.s += worked
        tally.corrections.n -= not call.has_result
    if error is not None:
        tally.errors[error] += 1
        if error in WRONG:
            tally.corrections.n += 1
            trail.went_wrong(call.tool, sig)
    elif worked:
        tally.results += 1
        signal = signal_of(call)
        tally.unsignalled += signal == "absent"
        tally.dead_ends += signal == "dead end"
    if call.duration_ms is not None and 0 <= call.duration_ms < MAX_DURATION_MS:
        tally.durations.add(call.duration_ms)
        if call.decision is not None:
            # Of other transcripts nobody knows whether it includes a person's thinking.
            (tally.worked_ms if worked else tally.failed_ms).add(call.duration_ms)
    if call.tool_cost_usd is not None and 0 < call.tool_cost_usd < MAX_COST_USD:
        tally.cost += micro_dollars(call.tool_cost_usd)
    tally.nudged_repeats += any(code.startswith("loops.") for code in call.nudges)
    tally.said_polling += polling
    tally.said_read_only += call.read_only is True
    same = worth in ("second", "later")
    # What is wrong with a call itself no work removes.
    mends = worked or error in REPAIRABLE or error in NEWS
    check = same and not polling and mends and any(done.did for done in since)
    idle = same and not polling and not check
    tally.checks += check
    tally.idle_failures += idle and not worked
    tally.wasted += idle or (error is not None and error not in NEWS)
    count_loop(tally, trail, call, sig, idle=idle)
    attempt = 0 if error is None else 1 + (latest.attempt if latest is not None else 0)
    undeclared = tool.read_only is None and tool.repeats != "evidence"
    changes = not (tool.read_only or tool.repeats == "evidence" or (undeclared and call.read_only))
    kept = polling or not refused_by_evidence(tally, trail, sig, worth)
    did = changes and worked and not same and not (undeclared and named_to_read(call.tool))
    trail.ran(
        Done(call.tool, sig, evidence, error, attempt, changes=changes, undeclared=undeclared, did=did), kept=kept
    )


@dataclass(frozen=True, slots=True)
class Now:
    """
    The call that repeats an earlier one.
    """

    tool: str
    sig: int | None
    worked: bool
    polling: bool
    known: bool
    """How it ended."""


def _count_repeat(
    tallies: dict[str, Tally], trail: Trail, worth: Worth, latest: Done, since: list[Done], *, tally: Tally, now: Now
) -> None:
    tally.repeats += 1
    if now.tool not in trail.repeated and len(trail.repeated) < MAX_NAMES:
        trail.repeated.add(now.tool)
        tally.repeat_sessions += 1
    tally.pointless_second += worth == "second"
    tally.pointless_later += worth == "later"
    same = worth in ("second", "later")
    tally.waits += same and now.polling
    if latest.error is not None and now.known:
        count_retry(tally, latest, since, worked=now.worked)
    count_rules(tally, latest, since, worth)
    if worth == "unknown" or latest.result_hash is None:
        return
    if latest.error is None:
        _count_harmless(tallies, since, now.tool, unchanged=same)
    _count_polling(tally, trail, now, same=same, disturbed=changed(since))


def _count_polling(tally: Tally, trail: Trail, now: Now, *, same: bool, disturbed: bool) -> None:
    """
    A run of equal calls begins with the second equal success, and ends with another one or with work in between.

    One that ends in a failure is none: what comes back after failures is a retry.
    """
    running = now.sig in trail.steady
    if running and (disturbed or not same):
        trail.steady.discard(now.sig)
        if not disturbed and not now.worked:
            tally.polls.n -= 1
        elif not disturbed:
            tally.polls.s += 1
            if now.tool not in trail.polled and len(trail.polled) < MAX_NAMES:
                trail.polled.add(now.tool)
                tally.poll_sessions += 1
    elif not running and not disturbed and same and now.worked and len(trail.steady) < MAX_NAMES:
        trail.steady.add(now.sig)
        tally.polls.n += 1


def _count_harmless(tallies: dict[str, Tally], since: list[Done], tool: str, *, unchanged: bool) -> None:
    between = {done.tool for done in since if done.changes or done.undeclared}
    if len(between) == 1 and tool not in between:
        other = tallies.get(next(iter(between)))
        if other is not None:
            other.harmless.add(unchanged)
