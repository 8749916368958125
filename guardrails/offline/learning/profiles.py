"""
The experience with each tool's failures: how often a retry works, after which wait, and how sure that is.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from guardrails.core.retries.model import ANY, ENOUGH, NONE, Count, RetryModel, times
from guardrails.core.retries.serving import Stakes
from guardrails.core.retries.trail import DELAYS_MS, WAITS_MS, Settled, Situation, extended, failure_of
from guardrails.core.values.errors import CORRECTABLE
from guardrails.offline.figures import plural, wilson


HOPELESS: Final = 0.05
"""Where even the upper end of the interval is below it, a retry does not resolve the failure."""


_COUNTS: Final = ("at_wait", "repaired", "corrected")


class Profile(NamedTuple):
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
    """The smallest wait within 10 % of the best; None: too few retries to say, or no wait helps."""
    wait_rate: float | None = None
    """Shrunk success after that wait."""
    at_wait: Count = NONE
    """Retries after about that wait."""
    repaired: Count = NONE
    """Repeats after something else was changed in between."""
    corrected: Count = NONE
    """Calls of the same tool with other arguments that came next, and those that worked."""

    correction: float | None = None
    """How likely such a call works, drawn to what all tools' came to; None: unknown."""

    def document(self) -> dict[str, Any]:
        """
        Returns the JSON value of it; `profile_of` reads it back.
        """
        numbers = {key: round(value, 6) for key, value in self._asdict().items() if isinstance(value, float)}
        counts = {key: [round(part, 6) for part in getattr(self, key)] for key in _COUNTS}
        return {**self._asdict(), **numbers, **counts}

    def sentence(self) -> str:
        """
        Returns the profile in words.
        """
        name = f"`{self.error}` of `{self.tool}`"
        rest = []
        if self.repaired.n >= ENOUGH:
            share = self.repaired.s / self.repaired.n
            rest.append(f"{share * 100:.0f} % worked after something was changed in between")
        # After other failures the next call is seldom the same again.
        if self.corrected.n >= ENOUGH and self.error in CORRECTABLE and self.correction is not None:
            seen = f"{_of(self.corrected)}, {_sure(*wilson(self.corrected))}"
            rest.append(f"the model corrects it itself {times(self.correction)} ({seen})")
        if not self.retries and rest:
            return f"after {name}, {'; '.join(rest)}"
        return "; ".join([f"{name} {self._resolving()}", *rest])

    def _resolving(self) -> str:
        sure, of_all = _sure(self.low, self.high), _of(Count(self.retries, self.successes))
        if self.retries < ENOUGH:
            return f"was retried {plural(round(self.retries), 'time')}: too few to say"
        if self.high < HOPELESS or not round(self.successes):
            return f"has hardly ever resolved on retry ({of_all} retries worked, {sure})"
        if self.wait_ms is None or self.wait_rate is None:
            return f"resolves on retry {self.rate * 100:.0f} % of the time ({of_all} retries worked, {sure})"
        wait = f"after {self.wait_ms / 1000:g} s" if self.wait_ms >= 1_000 else "at once"
        then = f"{_of(self.at_wait)} retries then; {of_all} after any wait, {sure}"
        return f"resolves on retry {self.wait_rate * 100:.0f} % of the time {wait} ({then})"


def _of(count: Count) -> str:
    return f"{count.s:.0f} of {count.n:.0f}"


def _sure(low: float, high: float) -> str:
    return f"95 % interval {low * 100:.0f} to {high * 100:.0f} %"


def profile_of(document: Mapping[str, Any]) -> Profile:
    """
    Returns the profile that `Profile.document` gave.
    """
    return Profile(**{**document, **{key: Count(*document[key]) for key in _COUNTS}})


def profiles(counts: Mapping[Any, Count]) -> list[Profile]:
    """
    Returns the profile of each tool and error type in *counts* of situations and corrections, in the order of their names.
    """
    sums: defaultdict[tuple[str, str], defaultdict[Any, Count]] = defaultdict(lambda: defaultdict(lambda: NONE))
    for what, count in counts.items():
        if not isinstance(what, Situation):
            names: tuple[Any, ...] = ("corrected",)
        else:
            names = ("repaired",) if what.between else ("plain", _WAIT_OF.get(what.delay))
        for tool in (ANY, what.tool):
            of = sums[tool, what.error]
            for name in names:
                of[name] = of[name].plus(count)
    return [_profile(tool, error, of, sums[ANY, error]) for (tool, error), of in sorted(sums.items()) if tool != ANY]


_WAIT_OF: Final = {bisect_left(DELAYS_MS, wait): wait for wait in reversed(WAITS_MS)}
"""The wait that stands for a level of `Situation.delay`."""


def _profile(tool: str, error: str, own: Mapping[Any, Count], every: Mapping[Any, Count]) -> Profile:
    """
    Returns the profile of the counts of a tool's *own*; its rates are drawn to those of *every* tool with this error.
    """
    plain, corrected = own["plain"], own["corrected"]
    rate, correction = (_drawn(own[name], every[name]) for name in ("plain", "corrected"))
    low, high = wilson(plain)
    made = Profile(tool, error, plain.n, plain.s, rate or 0.0, low, high, repaired=own["repaired"], corrected=corrected)
    made = made._replace(correction=correction)
    # If nothing helps, no wait is the best. A wait is drawn to the rate of its own tool and error.
    rates = {wait: own[wait].posterior(made.rate) for wait in WAITS_MS if own[wait].n >= ENOUGH}
    if plain.n < ENOUGH or high < HOPELESS or not round(plain.s) or not rates:
        return made
    share = 1 - Stakes().within
    wait = next(wait for wait, rate in rates.items() if rate >= share * max(rates.values()))
    # Nor does a wait say anything after which fewer retries work than after any.
    if rates[wait] < max(HOPELESS, share * made.rate):
        return made
    return made._replace(wait_ms=wait, wait_rate=rates[wait], at_wait=own[wait])


def _drawn(count: Count, every: Count) -> float | None:
    return count.posterior(every.s / every.n) if count.n else None


def curve_of(model: RetryModel, tool: str, error: str) -> list[tuple[int, float]]:
    """
    Returns how likely the same call works after each wait that may be advised, in milliseconds. The failure is the
    first of a session that is a minute old.
    """
    failure = failure_of(extended(None, Settled(tool, None, error, 0)), 60_000)
    return [(wait, round(model.probability(failure.retried(wait)), 6)) for wait in WAITS_MS]
