"""
The figures of one tool: each is an expression over the rows of its calls.
"""

import math

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.retries.shrinkage import Count
from guardrails.core.values.errors import TRANSIENT
from guardrails.core.values.types import MICRO, micro_dollars

from .rows import REFUSED, SAME, WRONG, Row


MAX_DURATION_MS: Final = 1 << 53
"""What is longer is no duration."""
MAX_ATTEMPT: Final = 6
"""Retries in a row that are told apart; later ones count as this."""
MAX_COST_USD: Final = 1e9


@dataclass(slots=True)
class Odds:
    """
    Tries, and how many came out as the name of the field says.
    """

    n: int = 0
    s: int = 0

    @classmethod
    def of(cls, came: Iterable[bool]) -> "Odds":
        """
        Returns the odds of what *came* of each try.
        """
        tries = list(came)
        return cls(len(tries), sum(tries))

    @property
    def count(self) -> Count:
        """
        The same for `wilson`.
        """
        return Count(self.n, self.s)

    @property
    def share(self) -> float | None:
        """
        Of 1; None without tries.
        """
        return ratio(self.s, self.n)


@dataclass(slots=True)
class Tally:
    """
    One tool. A call is the model's wish: a denied call did not run.
    """

    tool: str
    calls: int = 0
    sessions: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    """Calls that did not run, by code."""
    errors: Counter[str] = field(default_factory=Counter)
    """By error type; `validation_error` are those refused for their arguments."""
    retries: Odds = field(default_factory=Odds)
    """Same call as one of the last 20 that had failed, of known end; those that worked."""
    corrections: Odds = field(default_factory=Odds)
    """Validation errors, unless nobody knows how the next call of the tool ended; those after which it, with other arguments, worked."""
    repeats: int = 0
    """Same call as one of the last 20, whatever came of them."""
    repeat_sessions: int = 0
    """Sessions in which there is one."""
    pointless_second: int = 0
    """Repeats with the same evidence as the latest, by the judge's rule."""
    pointless_later: int = 0
    waits: int = 0
    """Pointless repeats of a tool that is declared as polling: not wasted."""
    checks: int = 0
    """Pointless repeats after something new was done in between, polling tools left out: not wasted."""
    idle_failures: int = 0
    """Idle calls that repeated a failure, or would have."""
    refused_repeats: int = 0
    """Denied by `duplicates` or `loops` for the same tool and arguments."""
    refused_stuck: int = 0
    """Denied by `loops` for going on with other arguments."""
    loops: int = 0
    """Runs of idle calls of one call in one session, up to the first that brought something."""
    nudged_repeats: int = 0
    """Nudged by `loops`; they ran."""
    observed: int = 0
    """Calls that guards in observe mode would have refused."""
    observed_worked: int = 0
    """Of them, those that worked, and brought what the latest same call had not."""
    results: int = 0
    """Successes whose result was recorded."""
    unsignalled: int = 0
    """Of them, those that did not say whether they were complete."""
    dead_ends: int = 0
    """Of them, those that said they were not complete, and not how to go on."""
    wasted: int = 0
    """Calls that were pointless, refused as such or for their arguments, or failed (but for `NEWS`); each once."""
    ms: list[int] = field(default_factory=list)
    """Durations."""
    worked_ms: list[int] = field(default_factory=list)
    """Of successes, measured around the tool itself: of own records only."""
    failed_ms: list[int] = field(default_factory=list)
    """The same of failures."""
    cost: int = 0
    """Of the tool itself, micro-dollars."""
    polls: Odds = field(default_factory=Odds)
    """Runs of equal successes of one call with nothing changed in between; those that ended in another success."""
    poll_sessions: int = 0
    """Sessions in which one did."""
    harmless: Odds = field(default_factory=Odds)
    """Equal calls of another tool, where only this tool may have changed something in between; those with one result."""
    said_polling: int = 0
    """Calls of which it was declared or recorded that they poll."""
    said_read_only: int = 0
    """Calls that were recorded as read-only."""
    always: dict[int, Odds] = field(default_factory=dict)
    """Repeats that the rule `always` refuses, by how many calls back the latest is; those that were pointless, with nothing
    changed in between."""
    stable: Odds = field(default_factory=Odds)
    """Repeats that a declaration as stable refuses; those that were pointless."""
    by_attempt: dict[int, Odds] = field(default_factory=dict)
    """Retries of a transient failure with nothing changed in between, by their number; those that worked."""

    @property
    def pointless(self) -> int:
        """
        All pointless repeats that ran.
        """
        return self.pointless_second + self.pointless_later

    @property
    def repeated(self) -> int:
        """
        Repeats that ran, and those that were refused.
        """
        return self.repeats + self.refused_repeats

    @property
    def idle(self) -> int:
        """
        Repeats that brought no news or were refused as repeats, except those of a tool that polls and those after work.
        """
        return self.pointless - self.waits - self.checks + self.refused_repeats + self.refused_stuck

    @property
    def retriable(self) -> int:
        """
        Failures of calls that ran.
        """
        return self.failed - self.errors[REFUSED]

    @property
    def unsaid(self) -> int:
        """
        Successes that did not say whether they were complete, or that they were not and no way to go on.
        """
        return self.unsignalled + self.dead_ends

    @property
    def unchecked(self) -> int:
        """
        Calls with wrong arguments that ran: nobody had checked them before.
        """
        return self.errors["validation"] + self.errors["invalid_path"]

    @property
    def failed(self) -> int:
        """
        Failures of calls that ran, and calls that were refused for their arguments.
        """
        return self.errors.total()

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures for another program: shares of 1, milliseconds, dollars. A figure is null if there is
        nothing to count.
        """
        return {
            "tool": self.tool,
            "calls": self.calls,
            "sessions": self.sessions,
            "score": self.wasted,
            "wasted": self.wasted,
            "wasted_share": ratio(self.wasted, self.calls),
            "denied": dict(self.denied.most_common()),
            "errors": dict(self.errors.most_common()),
            "retries": self.retries.n,
            "retry_rate": ratio(self.retries.n, self.retriable),
            "retry_success": self.retries.share,
            "validation_errors": self.corrections.n,
            "self_correction_rate": self.corrections.share,
            "repeats": self.repeats,
            "duplicate_rate": ratio(self.repeated, self.calls),
            "pointless_second": self.pointless_second,
            "pointless_later": self.pointless_later,
            "polling_waits": self.waits,
            "checks": self.checks,
            "refused_repeats": self.refused_repeats,
            "refused_stuck": self.refused_stuck,
            "nudged_repeats": self.nudged_repeats,
            "observed": self.observed,
            "observed_worked": self.observed_worked,
            "loop_rate": ratio(self.idle, self.calls),
            "loops": self.loops,
            "loop_calls": self.idle,
            "repeated_errors": self.idle_failures,
            "untyped_errors": self.errors["other"],
            "wrong_arguments_that_ran": self.unchecked,
            "results": self.results,
            "without_completion_signal": self.unsignalled,
            "incomplete_without_next_step": self.dead_ends,
            "durations": len(self.ms),
            "p50_ms": quantile(self.ms, 0.5),
            "p99_ms": quantile(self.ms, 0.99),
            "cost_usd": self.cost / MICRO,
        }


def tally_of(tool: str, sessions: Sequence[Sequence[Row]], harmless: Odds) -> Tally:
    """
    Returns the figures of *tool*, whose rows are *sessions*; *harmless* is of the rows of other tools.
    """
    rows = [row for session in sessions for row in session]
    ran = [row for row in rows if row.ran]
    refused = [(row, row.call.code or "unknown") for row in rows if not row.ran]
    repeats = [row for row in ran if row.latest is not None]
    # A retry is no repeat, and nobody knows what a call without a result brought.
    told = [row for row in repeats if row.worth != "unknown" and row.latest and row.latest.evidence is not None]
    kept = [row for row in told if row.latest and row.latest.error not in TRANSIENT]
    ms = [(row, row.call.duration_ms) for row in ran if row.call.duration_ms is not None]
    timed = [(row, took) for row, took in ms if 0 <= took < MAX_DURATION_MS]
    own = [(row, took) for row, took in timed if row.call.decision is not None]
    again = [row for row in repeats if row.latest and row.latest.error is not None and row.known]
    passing = [row for row in again if row.latest and row.latest.error in TRANSIENT and not row.changed]
    return Tally(
        tool,
        calls=len(rows),
        sessions=len(sessions),
        denied=Counter(code for _, code in refused),
        errors=Counter(row.error for row in rows if row.error is not None),
        retries=Odds.of(row.worked for row in again),
        corrections=Odds.of(row.corrected for row in rows if row.error in WRONG and row.corrected is not None),
        repeats=len(repeats),
        repeat_sessions=sum(any(row.ran and row.latest is not None for row in session) for session in sessions),
        pointless_second=sum(row.worth == "second" for row in repeats),
        pointless_later=sum(row.worth == "later" for row in repeats),
        waits=sum(row.same and row.polling for row in repeats),
        checks=sum(row.check for row in repeats),
        idle_failures=sum(row.idle and _failed_again(row) for row in rows),
        refused_repeats=sum(code.startswith(SAME) for _, code in refused),
        refused_stuck=sum(row.idle and not code.startswith(SAME) for row, code in refused),
        loops=sum(row.begins for row in rows),
        nudged_repeats=sum(any(code.startswith("loops.") for code in row.call.nudges) for row in ran),
        observed=sum(bool(row.call.observed) for row in rows),
        observed_worked=sum(bool(row.call.observed) and row.worked and not row.same for row in rows),
        results=sum(row.worked for row in rows),
        unsignalled=sum(row.signal == "absent" for row in rows),
        dead_ends=sum(row.signal == "dead end" for row in rows),
        wasted=sum(row.wasted for row in rows),
        ms=[took for _, took in timed],
        # Of other transcripts nobody knows whether it includes a person's thinking.
        worked_ms=[took for row, took in own if row.worked],
        failed_ms=[took for row, took in own if not row.worked],
        cost=sum(micro_dollars(usd) for row in ran if 0 < (usd := row.call.tool_cost_usd or 0) < MAX_COST_USD),
        polls=Odds.of(row.polled for row in ran if row.polled is not None),
        poll_sessions=sum(any(row.polled for row in session) for session in sessions),
        harmless=harmless,
        said_polling=sum(row.polling for row in ran),
        said_read_only=sum(row.call.read_only is True for row in ran),
        # A check after an edit is honest though it says what it said before.
        always=_by((row.back, row.same and not row.acted) for row in kept if not row.again),
        stable=Odds.of(row.same for row in kept if row.latest and not row.latest.error and not row.changed_by_others),
        by_attempt=_by((min(row.latest.attempt, MAX_ATTEMPT), row.worked) for row in passing if row.latest),
    )


def harmless_of(rows: Iterable[Row]) -> dict[str, Odds]:
    """
    Returns of each tool the equal calls of others between which it alone may have changed something: those with one result.
    """
    found: dict[str, list[bool]] = {}
    for row in rows:
        if (
            row.between
            and row.worth != "unknown"
            and row.latest
            and row.latest.worked
            and row.latest.evidence is not None
        ):
            found.setdefault(row.between, []).append(row.same)
    return {tool: Odds.of(came) for tool, came in found.items()}


def _failed_again(row: Row) -> bool:
    if row.ran:
        return not row.worked
    return (row.call.code or "").startswith(SAME) and row.latest is not None and row.latest.error is not None


def _by(tries: Iterable[tuple[int, bool]]) -> dict[int, Odds]:
    found: dict[int, list[bool]] = {}
    for key, came in tries:
        found.setdefault(key, []).append(came)
    return {key: Odds.of(came) for key, came in found.items()}


def quantile(ms: Sequence[int], q: float) -> int | None:
    """
    Returns the duration of which a share *q* (0 to 1) of all is at or below; None without any.
    """
    return sorted(ms)[max(1, math.ceil(q * len(ms))) - 1] if ms else None


def ratio(part: float, whole: int) -> float | None:
    """
    Returns a share of 1; None of nothing.
    """
    return part / whole if whole else None
