"""
Quantiles of any number of values in bounded memory.

The sketch of Masson, Rim and Lee (DDSketch, VLDB 2019) counts values in buckets whose bounds grow by a fixed factor. A
quantile of any values, in any order, is off by at most `ACCURACY` of itself.
"""

import math

from collections import Counter
from typing import Final


ACCURACY: Final = 0.01
"""Largest relative error of a quantile."""
MOST: Final = 1 << 53
"""Values above this count as this: 2,000 buckets at most."""
_GAMMA: Final = (1 + ACCURACY) / (1 - ACCURACY)
_LOG: Final = math.log(_GAMMA)


class Quantiles:
    """
    A sketch of values from 0 on.
    """

    __slots__ = ("buckets", "n")

    def __init__(self) -> None:
        self.n = 0
        self.buckets: Counter[int] = Counter()
        """Values by the place of their bucket; -1: below 1."""

    def add(self, value: float) -> None:
        """
        Count one value. A value below 1 counts as 0.
        """
        self.n += 1
        self.buckets[math.ceil(math.log(min(value, MOST)) / _LOG) if value >= 1 else -1] += 1

    def at(self, q: float) -> float | None:
        """
        Returns the value of which a share *q* (0 to 1) of all is at or below; None without values.
        """
        if not self.n:
            return None
        left = max(1, math.ceil(q * self.n))
        for place in sorted(self.buckets):
            left -= self.buckets[place]
            if left <= 0:
                return _value(place)
        raise AssertionError("the buckets hold all values")

    def above(self, value: float) -> int:
        """
        Returns how many are greater than *value*, within the accuracy.
        """
        return sum(n for place, n in self.buckets.items() if _value(place) > value)


def _value(place: int) -> float:
    return 0.0 if place < 0 else 2 * _GAMMA**place / (_GAMMA + 1)
