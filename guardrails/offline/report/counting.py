"""
Count recorded calls by tool: a pure step for each call.

The conditions of the rules against repeats are those of the guard `duplicates`, so that a figure here is what a replay of the
setting finds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import REPAIRABLE, TRANSIENT, WITHOUT_EFFECT
from guardrails.core.values.types import micro_dollars
from guardrails.offline.replay.evidence import WINDOW, Past, Worth, end_of
from guardrails.offline.transcripts.calls import RecordedCall

from .names import named_to_read
from .signals import signal_of
from .tally import MAX_ATTEMPT, MAX_DURATION_MS, NEWS, REFUSED, Odds, Tally


CORRECTED_WITHIN: Final = 5
"""Calls after a validation error among which its correction is looked for."""


class Done(NamedTuple):
    """
    A call that ran.
    """

    tool: str
    sig: int | None
    result_hash: int | None
    """The evidence; None: nobody knows."""
    error: str | None
    attempt: int
    """Failures of this very call in a row, this one included; 0: it worked, or nobody knows."""
    changes: bool
    """It is not known to change nothing."""
    undeclared: bool = False
    """The policy does not say whether it changes anything."""
    did: bool = False
    """It may have done something new: it worked, is not known or named to read only, and repeated nothing for nothing."""

    @property
    def status(self) -> str:
        """
        As of an entry of a session.
        """
        return "ok" if self.error is None else "error"

    @property
    def worked(self) -> bool:
        """
        Whether it may have changed something, as far as its end tells.
        """
        return self.changes and self.error not in WITHOUT_EFFECT


class Wrong(NamedTuple):
    """
    A call whose arguments were wrong.
    """

    number: int
    sig: int | None


@dataclass(slots=True)
class Trail:
    """
    One session: at most 20 calls, and open corrections for at most as many tools.
    """

    number: int = 0
    """Calls so far, denied ones included."""
    past: Past = field(default_factory=Past)
    done: list[Done] = field(default_factory=list)
    sigs: list[int | None] = field(default_factory=list)
    """Of *done*: looked through first, since most calls repeat none."""
    wrong: dict[str, Wrong] = field(default_factory=dict)
    """The validation error of each tool that is not corrected yet."""
    tools: set[str] = field(default_factory=set)
    """That the session was counted for."""
    repeated: set[str] = field(default_factory=set)
    polled: set[str] = field(default_factory=set)
    """Those that brought something after equal results."""
    steady: set[int | None] = field(default_factory=set)
    """Calls whose latest results were equal, with nothing changed in between."""
    looping: dict[int | None, tuple[bool, bool]] = field(default_factory=dict)
    """Calls of which the latest was idle; whether tokens, and a duration, were known of one of them."""
    turn: int | None = None
    """The latest model response."""
    told: bool = False
    """Whether its tokens are known."""
    spent: tuple[Tally, int] | None = None
    """Where its tokens are counted, and how many: all its calls are idle so far."""

    def latest(self, sig: int | None) -> int | None:
        """
        Returns the place of the latest call of *sig*. Returns None if there is none.
        """
        if sig is not None and sig in self.sigs:
            for place in range(len(self.done) - 1, -1, -1):
                if self.done[place].sig == sig:
                    return place
        return None

    def ran(self, done: Done) -> None:
        """
        Note a call that ran.
        """
        self.done.append(done)
        self.sigs.append(done.sig)
        if len(self.done) > WINDOW:
            del self.done[0], self.sigs[0]

    def went_wrong(self, tool: str, sig: int | None) -> None:
        """
        Note a call with wrong arguments.
        """
        if len(self.wrong) >= WINDOW and tool not in self.wrong:
            del self.wrong[next(iter(self.wrong))]
        self.wrong[tool] = Wrong(self.number, sig)

    def correction(self, tool: str, sig: int | None) -> bool:
        """
        Returns whether a call of *tool* corrects the one that went wrong; that one is done with.
        """
        wrong = self.wrong.pop(tool, None)
        return wrong is not None and self.number - wrong.number <= CORRECTED_WITHIN and wrong.sig != sig


def count_rules(tally: Tally, latest: Done, since: Sequence[Done], worth: Worth) -> None:
    """
    Note for the rules that go by the latest equal call whether refusing this one was right: whether it was pointless.

    The calls that ran after *latest* are *since*.
    """
    if worth == "unknown" or latest.result_hash is None or latest.error in TRANSIENT:
        return
    same = worth in ("second", "later")
    if not _worth_again(latest, since):
        # A check after an edit is honest though it says what it said before.
        tally.always.setdefault(len(since) + 1, Odds()).add(same and not any(done.worked for done in since))
    if latest.error is None and not _changed(since, latest.tool):
        tally.stable.add(same)


def count_retry(tally: Tally, latest: Done, since: Sequence[Done], *, worked: bool) -> None:
    """
    Note whether the same call after *latest*, which failed, *worked*: it is known to have ended so or otherwise.
    """
    tally.retries.add(worked)
    if latest.error in TRANSIENT and not changed(since):
        tally.by_attempt.setdefault(min(latest.attempt, MAX_ATTEMPT), Odds()).add(worked)


def changed(since: Sequence[Done]) -> bool:
    """
    Returns whether one of the calls may have changed something.
    """
    return any(done.changes for done in since)


def _changed(since: Sequence[Done], tool: str) -> bool:
    # A tool that is declared stable changes nothing itself.
    return any(done.changes and done.tool != tool for done in since)


def _worth_again(latest: Done, since: Sequence[Done]) -> bool:
    return latest.error == "cancelled" or (latest.error in REPAIRABLE and len(since) > 0)


MAX_TOKENS: Final = 1 << 40
"""Of one response; what is more is no number of tokens."""


def count_loop(tally: Tally, trail: Trail, call: RecordedCall, sig: int | None, *, idle: bool) -> None:
    """
    Note whether *call*, the next of its session, was *idle*: it brought nothing new, or was refused as one that would not.

    The tokens of a model response count if all its calls were idle: else it was worth making.
    """
    tokens = (call.tokens_in or 0) + (call.tokens_out or 0)
    begins = tokens > 0 or call.turn is None or call.turn != trail.turn
    trail.turn = call.turn
    if begins:
        trail.spent = None
        trail.told = 0 < tokens < MAX_TOKENS
    if not idle:
        trail.looping.pop(sig, None)
        if trail.spent is not None:
            charged, spent = trail.spent
            charged.loop_tokens -= spent
            trail.spent = None
        return
    told, timed = trail.looping.pop(sig) if sig in trail.looping else _began(tally, trail)
    if trail.told and not told:
        tally.loops_told += 1
    if begins and trail.told:
        tally.loop_tokens += tokens
        trail.spent = tally, tokens
    took = None if call.decision == "deny" else call.duration_ms
    if took is not None and 0 <= took < MAX_DURATION_MS:
        tally.loop_ms += took
        tally.loops_timed += not timed
        timed = True
    if sig is not None:
        trail.looping[sig] = told or trail.told, timed


def _began(tally: Tally, trail: Trail) -> tuple[bool, bool]:
    tally.loops += 1
    if len(trail.looping) >= WINDOW:
        del trail.looping[next(iter(trail.looping))]
    return False, False


MAX_COST_USD: Final = 1e9
WRONG: Final = frozenset({"validation", "invalid_path", REFUSED})
"""Errors that the model can correct by other arguments."""
REPEATS: Final = ("duplicates.", "loops.")
SAME: Final = ("duplicates.", *(f"loops.{name}" for name in ("identical", "unrepaired", "reread", "cycle")))
"""Of them, those for the same tool and arguments; the others are for going on with other ones."""
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
        if call.tool not in trail.tools:
            trail.tools.add(call.tool)
            tally.sessions += 1
        if call.cost_usd is not None and 0 < call.cost_usd < MAX_COST_USD:
            self.model_cost += micro_dollars(call.cost_usd)
        sig = call.signature
        if call.decision == "deny":
            _count_denied(tally, trail, call, sig)
        else:
            _count_run(self.tallies, tally, trail, call, sig, tool)

    def _trail(self, call: RecordedCall) -> Trail:
        key = (call.source, call.session_id, call.run)
        trail = self.trails.get(key)
        if trail is None:
            self.sessions += 1
            self.sources.add(call.source)
            trail = self.trails[key] = Trail()
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
    tally.denied[code] += 1
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
    outcome, evidence = end_of(call, tool)
    error = outcome.error_type if call.has_result else None
    worked = call.has_result and error is None
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
        tally.durations.ms.append(call.duration_ms)
        if call.decision is not None:
            # Of other transcripts nobody knows whether it includes a person's thinking.
            (tally.worked_ms if worked else tally.failed_ms).ms.append(call.duration_ms)
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
    changes = tool.changes and not (undeclared and call.read_only)
    did = changes and worked and not same and not (undeclared and named_to_read(call.tool))
    trail.ran(Done(call.tool, sig, evidence, error, attempt, changes=changes, undeclared=undeclared, did=did))


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
    if now.tool not in trail.repeated:
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
            if now.tool not in trail.polled:
                trail.polled.add(now.tool)
                tally.poll_sessions += 1
    elif not running and not disturbed and same and now.worked:
        trail.steady.add(now.sig)
        tally.polls.n += 1


def _count_harmless(tallies: dict[str, Tally], since: list[Done], tool: str, *, unchanged: bool) -> None:
    between = {done.tool for done in since if done.changes or done.undeclared}
    if len(between) == 1 and tool not in between:
        other = tallies.get(next(iter(between)))
        if other is not None:
            other.harmless.add(unchanged)
