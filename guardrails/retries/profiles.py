"""
What is known of each tool's failures: how often a retry works, after which wait, and how sure that is.
"""

import math

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple


Z95: Final = 1.959963984540054
"""Two-sided 95 % point of the standard normal distribution."""
ENOUGH: Final = 5
"""Retries below which a sentence only says how many there were."""
WITHIN: Final = 0.1
"""The best wait is the smallest whose success is at most this share below the best."""
MEAN_WEIGHT: Final = 2.0
"""Retries that the rate over all error types counts for in the rate of one."""
STRENGTHS: Final = (0.1, 10_000.0)
"""Bounds of a Beta prior's strength, in retries."""
NAMES: Final[Mapping[str, str]] = {
    "auth": "refused credentials",
    "permission": "refused permissions",
    "rate_limit": "rate limits",
    "validation": "validation errors",
    "not_found": "missing things",
    "conflict": "conflicts",
    "precondition": "unmet preconditions",
    "server_error": "server errors",
    "unavailable": "outages",
    "timeout": "timeouts",
    "connection": "lost connections",
    "cancelled": "cancellations",
    "tool_missing": "missing tools",
    "invalid_path": "invalid paths",
    "too_large": "oversized requests",
    "exec_nonzero": "non-zero exits",
    "code_error": "code errors",
    "other": "other errors",
    "validation_error": "refused arguments",
}
"""An error type as the subject of a sentence; `validation_error` is a call that the guards refused."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """
    The retries after failures of one kind of one tool. Rates are shares of 1, waits milliseconds.
    """

    tool: str
    error: str
    retries: float
    """Plain repeats: the same call again, nothing changed in between."""
    successes: float
    rate: float
    """Shrunk towards its error type's rate."""
    low: float
    """95 % Wilson interval of the unshrunk share."""
    high: float
    wait_ms: int | None = None
    """The smallest wait within 10 % of the best; None: too few retries to say."""
    wait_rate: float | None = None
    """Shrunk success after that wait."""
    repaired: Count = NONE
    """Repeats after something else was changed in between."""
    corrected: Count = NONE
    """Calls of the same tool with other arguments that came next, and those that worked."""

    @property
    def correction_rate(self) -> float | None:
        """
        How often the model corrects itself: the share of changed calls that worked; None where there were none.
        """
        return self.corrected.s / self.corrected.n if self.corrected.n else None

    def document(self) -> dict[str, Any]:
        """
        The JSON value of it; `profile_of` reads it back.
        """
        made = asdict(self)
        numbers = {key: round(value, 6) for key, value in made.items() if isinstance(value, float)}
        counts = {key: [round(part, 6) for part in made[key]] for key in ("repaired", "corrected")}
        return {**made, **numbers, **counts}

    def sentence(self) -> str:
        """
        What it says, in words.
        """
        name = f"{NAMES[self.error]} of `{self.tool}`"
        parts = []
        if self.retries < ENOUGH:
            parts.append(f"{name} were retried {_times(self.retries)}: too few to say")
        else:
            rate, wait = (self.rate, "") if self.wait_ms is None else (self.wait_rate or 0.0, _after(self.wait_ms))
            parts.append(
                f"{name} resolve on retry {rate * 100:.0f} % of the time{wait} ({self.successes:.0f} of "
                f"{self.retries:.0f} retries worked, 95 % interval {self.low * 100:.0f} to {self.high * 100:.0f} %)"
            )
        if self.repaired.n >= ENOUGH:
            share = self.repaired.s / self.repaired.n
            parts.append(f"{share * 100:.0f} % worked after something was changed in between")
        if self.corrected.n >= ENOUGH and self.correction_rate is not None:
            parts.append(f"{self.correction_rate * 100:.0f} % of the corrected calls worked")
        return "; ".join(parts)


def profile_of(document: Mapping[str, Any]) -> Profile:
    """
    The profile that `Profile.document` gave. Raises TypeError or ValueError where it is none.
    """
    counts = {key: Count(*document[key]) for key in ("repaired", "corrected") if key in document}
    made = Profile(**{**document, **counts})
    for name in ("retries", "successes", "rate", "low", "high"):
        if type(getattr(made, name)) not in (int, float) or getattr(made, name) < 0:
            raise ValueError(f"`{name}` of a profile is no number from 0 on")
    if not isinstance(made.tool, str) or made.error not in NAMES:
        raise ValueError("a profile is of a tool and an error type")
    return made


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


class Tally(NamedTuple):
    """
    What the cells of one tool and error type add up to.
    """

    waits: Mapping[int, Count]
    """Plain repeats by the wait that stands for their bucket, in milliseconds."""
    untimed: Count = NONE
    """Plain repeats in records without times."""
    repaired: Count = NONE
    corrected: Count = NONE

    @property
    def plain(self) -> Count:
        """
        All plain repeats.
        """
        counts = [*self.waits.values(), self.untimed]
        return Count(math.fsum(count.n for count in counts), math.fsum(count.s for count in counts))


def profiles(tallies: Mapping[tuple[str, str], Tally]) -> list[Profile]:
    """
    The profile of each (tool, error type), in the order of their names.
    """
    shrunk = priors({key: tally.plain for key, tally in tallies.items() if tally.plain.n > 0})
    made = []
    for (tool, error), tally in sorted(tallies.items()):
        count = tally.plain
        prior = shrunk.get(error)
        low, high = wilson(count)
        profile = Profile(
            tool=tool,
            error=error,
            retries=count.n,
            successes=count.s,
            rate=0.0 if prior is None else prior.rate(count),
            low=low,
            high=high,
            repaired=tally.repaired,
            corrected=tally.corrected,
        )
        made.append(profile if prior is None or count.n < ENOUGH else _with_wait(profile, tally.waits, prior))
    return made


def _with_wait(profile: Profile, waits: Mapping[int, Count], prior: Beta) -> Profile:
    # A wait is drawn to the rate of its own tool and error, with the strength that tools of this error are drawn with.
    own = Beta(profile.rate, prior.strength)
    known = sorted(wait for wait, count in waits.items() if count.n > 0)
    if not known:
        return profile
    rates = [own.rate(waits[wait]) for wait in known]
    place = best_wait(rates)
    return replace(profile, wait_ms=known[place], wait_rate=rates[place])


def _after(wait_ms: int) -> str:
    return f" after {wait_ms / 1000:g} s" if wait_ms >= 1_000 else " at once"


def _times(n: float) -> str:
    whole = round(n)
    return "never" if whole == 0 else "once" if whole == 1 else f"{whole} times"
