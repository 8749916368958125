"""
The probability that a call brings nothing new: a logistic regression over the levels of its features, as tables.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from guardrails.core.retries.scoring import SEPARATOR, Term, probability

from .features import FACTORS, Levels


DEFAULT: Final = "default"
"""The name of the shipped model."""
UNKNOWN: Final = frozenset({("ago", 0)})
"""Levels that weigh nothing: not to know the time is no sign of anything."""
_PLACES: Final = {name: at for at, name in enumerate(FACTORS)}
_Table = tuple[int, int, int, list[float]]
"""(place, place, radix of the second, weights)"""


class RepeatModel:
    """
    A model that was read. `probability(levels)` is what it is for.
    """

    __slots__ = ("_tables", "body", "deny_at", "intercept", "name", "terms")

    def __init__(
        self, intercept: float, terms: Iterable[Term], deny_at: float, *, name: str = "", body: Mapping[str, Any] = {}
    ) -> None:
        self.intercept = intercept
        self.deny_at = deny_at
        """From this probability on the second occurrence of an exact repeat may be refused; above 1: never."""
        self.name = name
        """The first digits of its hash."""
        self.body = body
        self.terms = tuple(terms)
        self._tables = _tables(self.terms)

    def logit(self, levels: Levels) -> float:
        """
        Returns the log odds that a call of *levels* brings nothing new.
        """
        total = self.intercept
        for one, other, radix, weights in self._tables:
            total += weights[levels[one] * radix + levels[other]]
        return total

    def probability(self, levels: Levels) -> float:
        """
        Returns the same as a probability.
        """
        return probability(self.logit(levels))


class Golden(NamedTuple):
    """
    Levels and what must come of them, so that a file is known to be read as it was written.
    """

    levels: Levels
    p: float


def _tables(terms: Iterable[Term]) -> list[_Table]:
    """
    Each pair of factors as one table; a single one is its own partner at any level.
    """
    tables = []
    for on, weights in terms:
        one = on[0]
        single = len(on) == 1
        other = one if single else on[1]
        radix = FACTORS[other]
        table = [0.0] * (FACTORS[one] * radix)
        for key, weight in weights.items():
            parts = [int(part) for part in key.split(SEPARATOR)]
            table[parts[0] * radix + parts[-1]] = weight
        tables.append((_PLACES[one], _PLACES[other], radix, table))
    return tables
