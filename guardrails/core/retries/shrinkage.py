"""
Shares of few tries: intervals, and rates drawn towards what is known of their like.
"""

import math

from typing import Final, NamedTuple


Z95: Final = 1.959963984540054
"""Two-sided 95 % point of the standard normal distribution."""
ENOUGH: Final = 5
"""Tries below which no sentence says more than how many there were."""
CORRECTION_STRENGTH: Final = 10.0
"""
Corrected calls of a tool that weigh as much as the rate of all tools, and of a run as much as no effect of it.

Of 3,031 such calls of public agents the log loss of sessions that were left out is within .001 of its best from 2 to 20; the
loss of sources that were left out is least at 10.
"""


class Count(NamedTuple):
    """
    Tries and how many of them worked; decayed counts are no whole numbers.
    """

    n: float
    s: float

    def plus(self, more: "Count") -> "Count":
        """
        Returns this and *more* together.
        """
        return Count(self.n + more.n, self.s + more.s)


NONE: Final = Count(0.0, 0.0)


class Beta(NamedTuple):
    """
    A Beta prior by its mean and its strength, the number of tries it counts for.
    """

    mean: float
    strength: float

    def rate(self, count: Count) -> float:
        """
        Returns the posterior mean: the share of *count* that worked, drawn towards the mean.
        """
        return (count.s + self.mean * self.strength) / (count.n + self.strength)


def wilson(count: Count) -> tuple[float, float]:
    """
    Returns the Wilson score interval of a share, of 95 % (E. B. Wilson, 1927); (0, 1) without tries.
    """
    n, s = count
    if n <= 0:
        return 0.0, 1.0
    share, square = s / n, Z95 * Z95
    centre = share + square / (2 * n)
    margin = Z95 * math.sqrt(max(0.0, share * (1 - share) / n + square / (4 * n * n)))
    scale = 1 + square / n
    return max(0.0, (centre - margin) / scale), min(1.0, (centre + margin) / scale)


def times(share: float) -> str:
    """
    Returns *share* as a person says it: `4 times in 5`, `1 time in 10`, `less than 1 time in 20`.
    """
    if share < 1 / 20:
        return "less than 1 time in 20"
    if share > 19 / 20:
        return "more than 19 times in 20"
    within = min(1 / 40, share / 10, (1 - share) / 10)
    tries = next((n for n in (2, 3, 4, 5, 7, 10) if abs(round(share * n) / n - share) <= within), 20)
    worked = round(share * tries)
    common = math.gcd(worked, tries)
    worked, tries = worked // common, tries // common
    return f"{worked} {'time' if worked == 1 else 'times'} in {tries}"
