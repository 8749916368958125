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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from guardrails.core.retries.model import Crossed
from guardrails.core.retries.shrinkage import NONE, Count
from guardrails.core.retries.trail import MAX_CALLS, MAX_MS, Failure, Settled, Situation, extended, failure_of
from guardrails.core.values.types import ERROR_TYPES, INVALID


DAY_MS: Final = 86_400_000
UNDATED: Final = -1
"""Day of records without times."""
FOLDS: Final = 16
"""Groups of sessions: a comparison on one of them has a standard error."""
_REFUSED: Final = (INVALID, "validation")
_KINDS: Final = frozenset((*ERROR_TYPES, INVALID))


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

    def of(self, kind: type) -> "Facts":
        """
        Returns the counts of one *kind* of fact, in a fixed order.
        """
        return Facts((fact, self[fact]) for fact in sorted(fact for fact in self if isinstance(fact.what, kind)))

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
        return Facts((fact, count) for fact, count in self.items() if fact.what is None).total.n

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


@dataclass(slots=True)
class Open:
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
    repeated: bool = False
    followed: bool = False
    """The tool was called again."""

    def fate(self, later: CallRow, changes: int, *, ran: bool) -> Iterator[tuple[Situation | Correction, bool]]:
        """
        Returns what a *later* call of the tool makes of it, and whether that worked.
        """
        mine, worked = self.row, later.error_type is None
        delay = None if later.started_ms is None or mine.ended_ms is None else later.started_ms - mine.ended_ms
        timely = delay is None or 0 <= delay <= MAX_MS
        same = mine.sig is not None and later.sig == mine.sig
        if not self.followed and (ran or self.failure is None):
            self.followed = True
            if timely and not same:
                fits = worked if self.failure else later.error_type not in _REFUSED
                yield Correction(mine.tool, _kind(mine)), fits
        if ran and same and self.failure is not None and not self.repeated:
            self.repeated = True
            if timely:
                yield self.failure.retried(delay, between=changes > self.changes), worked


def labelled(rows: Iterable[CallRow]) -> Iterator[tuple[CallRow, Failure | Situation | Correction | None, bool]]:
    """
    Returns the failures among *rows*, the calls of one session in the order in which they settled, each as it comes (None: its
    arguments were refused), and later what became of it, and whether that worked.
    """
    trail: dict[str, Any] | None = None
    waiting: list[Open] = []
    position = changes = 0
    for row in rows:
        ran = row.error_type != INVALID
        position += ran
        waiting = [one for one in waiting if position - one.position <= MAX_CALLS]
        for one in waiting:
            if one.row.tool == row.tool:
                for what, worked in one.fate(row, changes, ran=ran):
                    yield one.row, what, worked
        if ran:
            trail = extended(trail, Settled(row.tool, row.sig, row.error_type, row.ended_ms), row.retry_after_ms)
            changes += row.error_type is None and row.changes
        if row.error_type is not None:
            failure = failure_of(trail, row.elapsed_ms) if ran and trail else None
            waiting.append(Open(row, failure, position, changes))
            yield row, failure, False


def facts_of(rows: Iterable[tuple[int, CallRow]]) -> Iterator[tuple[Fact, bool]]:
    """
    Returns each fact in *rows*, (session, call) with the calls of a session together and in the order in which they
    settled, and whether it worked.
    """
    for session, calls in groupby(rows, key=itemgetter(0)):
        for row, what, worked in labelled(call for _, call in calls):
            day = UNDATED if row.ended_ms is None else row.ended_ms // DAY_MS
            yield Fact(day, session % FOLDS, what if isinstance(what, Situation | Correction) else None), worked


def _kind(row: CallRow) -> str:
    return row.error_type if row.error_type in _KINDS else "other"
