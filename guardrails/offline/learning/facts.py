"""
Facts: labels of all sessions, counted. Facts of two sets of sessions add up, whichever engine read them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from guardrails.core.retries.shrinkage import NONE, Count
from guardrails.core.retries.trail import Situation
from guardrails.core.values.types import ERROR_TYPES, INVALID

from .labels import CallRow, labelled


DAY_MS: Final = 86_400_000
UNDATED: Final = -1
"""Day of records without times."""
FOLDS: Final = 16
"""Groups of sessions: a comparison on one of them has a standard error."""
_KINDS: Final = frozenset(ERROR_TYPES)


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
    what: Situation | Correction | None


@dataclass(slots=True)
class Facts:
    """
    The counts of facts.
    """

    counts: dict[Fact, Count] = field(default_factory=dict)

    def add(self, fact: Fact, n: float, s: float) -> None:
        """
        Count *n* more of *fact*, of which *s* worked.
        """
        self.counts[fact] = self.counts.get(fact, NONE).plus(Count(n, s))

    def of(self, kind: type) -> "dict[Fact, Count]":
        """
        Returns the counts of one *kind* of fact, in a fixed order.
        """
        return {fact: self.counts[fact] for fact in sorted(fact for fact in self.counts if isinstance(fact.what, kind))}

    @property
    def failures(self) -> float:
        """
        All failures, also those that were not tried again.
        """
        return sum(count.n for fact, count in self.counts.items() if fact.what is None)

    @property
    def days(self) -> int:
        """
        Days with a failure.
        """
        return len({fact.day for fact in self.counts} - {UNDATED})


def facts_of(rows: Iterable[tuple[int, CallRow]]) -> Iterator[tuple[Fact, int]]:
    """
    Returns each fact in *rows*, (session, call) with the calls of a session together and in the order in which they
    settled, and 1 if it worked.
    """
    for session, calls in groupby(rows, key=itemgetter(0)):
        fold = session % FOLDS
        for label in labelled(call for _, call in calls):
            row = label.row
            error = row.error_type if row.error_type in _KINDS or row.error_type == INVALID else "other"
            day = UNDATED if row.ended_ms is None else row.ended_ms // DAY_MS
            yield Fact(day, fold, None), 0
            if label.situation is not None:
                yield Fact(day, fold, label.situation), int(label.worked)
            if label.corrected is not None:
                yield Fact(day, fold, Correction(row.tool, error or "other")), int(label.corrected)


def decayed(counts: Mapping[Fact, Count], half_life_days: float) -> dict[Fact, Count]:
    """
    Returns *counts*, each weighing half for every *half_life_days* that its day is before the newest one. Undated ones
    count whole.
    """
    newest = max((fact.day for fact in counts), default=0)
    weights = {fact.day: 0.5 ** ((newest - fact.day) / half_life_days) for fact in counts}
    weights[UNDATED] = 1.0
    return {fact: Count(n * weights[fact.day], s * weights[fact.day]) for fact, (n, s) in counts.items()}


def summed(counts: Mapping[Fact, Count]) -> dict[Situation | Correction | None, Count]:
    """
    Returns *counts* without their days and groups of sessions.
    """
    made: dict[Situation | Correction | None, Count] = {}
    for fact, count in counts.items():
        made[fact.what] = made.get(fact.what, NONE).plus(count)
    return made
