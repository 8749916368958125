"""
Shares of few tries: intervals, and rates drawn towards what is known of their like.
"""

import math

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple


Z95: Final = 1.959963984540054
"""Two-sided 95 % point of the standard normal distribution."""
WITHIN: Final = 0.1
"""The best wait is the smallest whose success is at most this share below the best."""
MEAN_WEIGHT: Final = 2.0
"""Retries that the rate over all error types counts for in the rate of one."""
STRENGTHS: Final = (0.1, 10_000.0)
"""Bounds of a Beta prior's strength, in retries."""


class Count(NamedTuple):
    """
    Tries and how many of them worked; decayed counts are no whole numbers.
    """

    n: float
    s: float


NONE: Final = Count(0.0, 0.0)


class Beta(NamedTuple):
    """
    A Beta prior by its mean and its strength, the number of tries it counts for.
    """

    mean: float
    strength: float

    def rate(self, count: Count) -> float:
        """
        The posterior mean: the share of *count* that worked, drawn towards the mean.
        """
        return (count.s + self.mean * self.strength) / (count.n + self.strength)


def wilson(count: Count, z: float = Z95) -> tuple[float, float]:
    """
    The Wilson score interval of a share (E. B. Wilson, 1927); (0, 1) without tries.
    """
    n, s = count
    if n <= 0:
        return 0.0, 1.0
    share, square = s / n, z * z
    centre = share + square / (2 * n)
    margin = z * math.sqrt(max(0.0, share * (1 - share) / n + square / (4 * n * n)))
    scale = 1 + square / n
    return max(0.0, (centre - margin) / scale), min(1.0, (centre + margin) / scale)


def beta_prior(groups: Iterable[Count], mean: float) -> Beta:
    """
    The Beta prior of *mean* whose strength makes the counts of *groups* most likely (empirical Bayes: the maximum of
    the Beta-binomial marginal likelihood, by golden section over the logarithm of the strength).
    """
    seen: dict[Count, int] = {}
    for count in groups:
        if count.n > 0:
            seen[count] = seen.get(count, 0) + 1
    mean = min(max(mean, 1e-4), 1 - 1e-4)
    if len(seen) < 2:
        # One group says nothing of how groups differ.
        return Beta(mean, MEAN_WEIGHT)

    def likelihood(log_strength: float) -> float:
        strength = math.exp(log_strength)
        a, b = mean * strength, (1 - mean) * strength
        lgamma = math.lgamma
        base = lgamma(strength) - lgamma(a) - lgamma(b)
        return sum(
            times * (base + lgamma(a + s) + lgamma(b + n - s) - lgamma(strength + n)) for (n, s), times in seen.items()
        )

    low, high = (math.log(bound) for bound in STRENGTHS)
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = likelihood(left), likelihood(right)
    while high - low > 1e-3:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = likelihood(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = likelihood(right)
    return Beta(mean, math.exp((low + high) / 2))


def priors(groups: Mapping[tuple[str, str], Count]) -> dict[str, Beta]:
    """
    The prior of each error type, from the counts of (tool, error type).

    Its mean is the rate of the type, drawn to the rate of all types where the type is rare.
    """
    total_n, total_s = (math.fsum(count[i] for count in groups.values()) for i in (0, 1))
    overall = (total_s + 0.5) / (total_n + 1)
    by_error: dict[str, list[Count]] = {}
    for (_, error), count in groups.items():
        by_error.setdefault(error, []).append(count)
    made = {}
    for error, counts in by_error.items():
        n, s = (math.fsum(count[i] for count in counts) for i in (0, 1))
        made[error] = beta_prior(counts, (s + MEAN_WEIGHT * overall) / (n + MEAN_WEIGHT))
    return made


def best_wait(rates: Sequence[float], within: float = WITHIN) -> int:
    """
    The place of the first of *rates*, ordered by wait, that is within the share *within* of the best.
    """
    least = (1 - within) * max(rates)
    return next(place for place, rate in enumerate(rates) if rate >= least)
