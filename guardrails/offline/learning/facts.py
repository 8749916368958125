"""
Facts: failures and what became of them, told from the calls of each session and counted. Facts of two sets of sessions add
up, whichever engine read them.

The next call of its signature labels a failure, if that call started after the failure ended and within the limits of
`trail`. A failure that never came again is no evidence either way.

A correction is the tool's next call, within the same limits, if its arguments are others. It is good if that call
works; after refused arguments it is good if its own arguments fit. Records do not say what it was for: see
`errors.CORRECTABLE`.
"""

import math

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from guardrails.core.retries.model import NONE, Count, Crossed
from guardrails.core.retries.trail import MAX_CALLS, MAX_MS, Failure, Settled, Situation, extended, failure_of
from guardrails.core.values.types import INVALID


DAY_MS: Final = 86_400_000
UNDATED: Final = -1
"""Day of records without times."""
FOLDS: Final = 16
"""Groups of sessions: a comparison on one of them has a standard error."""


class CallRow(NamedTuple):
    """
    One call of a session as records tell it.
    """

    tool: str
    sig: int | None
    error_type: str | None
    """None: it worked; `INVALID`: it did not run."""
    started_ms: int | None = None
    ended_ms: int | None = None
    elapsed_ms: int | None = None
    """Age of the session when it ended."""
    retry_after_ms: int | None = None
    changes: bool = True
    """It may have changed something."""


class Correction(NamedTuple):
    """
    A call with other arguments after a failure.
    """

    tool: str
    error: str


class Fact(NamedTuple):
    """
    What is counted: retries in a situation, corrections, or failures (None).
    """

    day: int
    """UTC days since 1970, `UNDATED` without a time."""
    fold: int
    what: Crossed | Correction | None


class Facts(dict[Fact, Count]):
    """
    The counts of facts.
    """

    def add(self, fact: Fact, n: float, s: float) -> None:
        """
        Count *n* more of *fact*, of which *s* worked.
        """
        self[fact] = self.get(fact, NONE).plus(Count(n, s))

    def where(self, chosen: Callable[[Fact], bool]) -> "Facts":
        """
        Returns the counts of the facts that are *chosen*.
        """
        return Facts((fact, count) for fact, count in self.items() if chosen(fact))

    def of(self, kind: type) -> "Facts":
        """
        Returns the counts of one *kind* of fact, in a fixed order.
        """
        return Facts(sorted(self.where(lambda fact: isinstance(fact.what, kind)).items()))

    def decayed(self, half_life_days: float) -> dict[Any, Count]:
        """
        Returns the counts without their days and groups of sessions, each weighing half for every *half_life_days* that its
        day is before the newest one. Undated ones count whole.
        """
        newest = max((fact.day for fact in self), default=0)
        made: dict[Any, Count] = {}
        for (day, _, what), (n, s) in self.items():
            weight = 1.0 if day == UNDATED else 0.5 ** ((newest - day) / half_life_days)
            made[what] = made.get(what, NONE).plus(Count(n * weight, s * weight))
        return made

    @property
    def total(self) -> Count:
        """
        All counts together.
        """
        return Count(*map(math.fsum, zip(NONE, *self.values(), strict=True)))

    @property
    def failures(self) -> float:
        """
        All failures, also those that were not tried again.
        """
        return self.where(lambda fact: fact.what is None).total.n

    @property
    def days(self) -> list[int]:
        """
        The days of the facts, in their order; those without one have none.
        """
        return sorted({fact.day for fact in self} - {UNDATED})

    @property
    def span(self) -> list[int] | None:
        """
        The first of these days and the last.
        """
        return [self.days[0], self.days[-1]] if self.days else None


class Open(NamedTuple):
    """
    A failure of which more may come.
    """

    row: CallRow
    failure: Failure | None
    """None: the arguments were refused, and the call did not run."""
    position: int
    """Calls that ran before it and with it."""
    changes: int
    """Those of them that worked and may have changed something."""

    def delay_to(self, later: CallRow) -> int | None:
        """
        Returns the milliseconds from its end to the start of a *later* call. Returns None if they are unknown.
        """
        started, ended = later.started_ms, self.row.ended_ms
        return None if started is None or ended is None else started - ended

    def leads_to(self, later: CallRow, position: int) -> bool:
        """
        Returns whether a *later* call at *position* is within the limits.
        """
        delay = self.delay_to(later)
        return position - self.position <= MAX_CALLS and (delay is None or 0 <= delay <= MAX_MS)


def labelled(rows: Iterable[CallRow]) -> Iterator[tuple[CallRow, Failure | Situation | Correction | None, bool]]:
    """
    Returns the failures among *rows*, the calls of one session in the order in which they settled, each as it comes (None: its
    arguments were refused), and later what became of it, and whether that worked.
    """
    trail: dict[str, Any] | None = None
    same: dict[tuple[str, int | None], Open] = {}
    """The latest failure of each tool and signature."""
    latest: dict[tuple[str, bool], Open] = {}
    """That of each tool, and whether it ran: a refused call does not follow upon one that ran."""
    position = changes = 0
    for row in rows:
        tool, sig, worked, ran = row.tool, row.sig, row.error_type is None, row.error_type != INVALID
        position += ran
        for kind in (True, False) if ran else (False,):
            one = latest.pop((tool, kind), None)
            if one and one.leads_to(row, position) and sig not in (None, one.row.sig):
                good = worked if kind else row.error_type not in (INVALID, "validation")
                yield one.row, Correction(tool, one.row.error_type or ""), good
        failure = None
        if ran:
            one = same.pop((tool, sig), None)
            if one and one.failure and one.leads_to(row, position):
                yield one.row, one.failure.retried(one.delay_to(row), between=changes > one.changes), worked
            trail = extended(trail, Settled(tool, sig, row.error_type, row.ended_ms), row.retry_after_ms)
            changes += worked and row.changes
            failure = None if worked else failure_of(trail, row.elapsed_ms)
        if not worked:
            latest[tool, ran] = made = Open(row, failure, position, changes)
            if ran and sig is not None:
                same[tool, sig] = made
            yield row, failure, False


def facts_of(rows: Iterable[tuple[int, CallRow]]) -> Iterator[tuple[Fact, bool]]:
    """
    Returns each fact in *rows*, (session, call) with the calls of a session together and in the order in which they
    settled, and whether it worked.
    """
    for session, calls in groupby(rows, key=itemgetter(0)):
        for row, what, worked in labelled(call for _, call in calls):
            fate = what if isinstance(what, Situation | Correction) else None
            yield Fact(day_of(row.ended_ms), session % FOLDS, fate), worked


def day_of(ms: int | None) -> int:
    """
    Returns the day of a time, `UNDATED` without one.
    """
    return UNDATED if ms is None else ms // DAY_MS
