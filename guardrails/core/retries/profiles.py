"""
The experience with each tool's failures: how often a retry works, after which wait, and how sure that is.
"""

import math

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from .decision import CORRECTABLE
from .shrinkage import ENOUGH, NONE, WITHIN, Beta, Corrections, Count, best_wait, priors, times, wilson


HOPELESS: Final = 0.05
"""Where even the upper end of the interval is below it, a retry does not resolve the failure."""
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


_COUNTS: Final = ("at_wait", "repaired", "corrected")


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

    @property
    def correction_rate(self) -> float | None:
        """
        The share of changed calls that worked, as it is; None if there were none.
        """
        return self.corrected.s / self.corrected.n if self.corrected.n else None

    @property
    def correction_interval(self) -> tuple[float, float]:
        """
        95 % Wilson interval of it.
        """
        return wilson(self.corrected)

    def document(self) -> dict[str, Any]:
        """
        Returns the JSON value of it; `profile_of` reads it back.
        """
        made = asdict(self)
        numbers = {key: round(value, 6) for key, value in made.items() if isinstance(value, float)}
        counts = {key: [round(part, 6) for part in made[key]] for key in _COUNTS}
        return {**made, **numbers, **counts}

    def sentence(self) -> str:
        """
        Returns the profile in words.
        """
        name = f"{NAMES[self.error]} of `{self.tool}`"
        rest = []
        if self.repaired.n >= ENOUGH:
            share = self.repaired.s / self.repaired.n
            rest.append(f"{share * 100:.0f} % worked after something was changed in between")
        if self.corrected.n >= ENOUGH and self.correction_rate is not None:
            rest.append(self._correcting(self.correction_rate))
        if not self.retries and rest:
            return f"after {name}, {'; '.join(rest)}"
        return "; ".join([f"{name} {self._resolving()}", *rest])

    def _correcting(self, share: float) -> str:
        low, high = self.correction_interval
        of_all = f"{self.corrected.s:.0f} of {self.corrected.n:.0f}"
        if self.error not in CORRECTABLE:
            # What comes next is seldom the same again.
            return f"{share * 100:.0f} % of the next calls with other arguments worked ({of_all})"
        told = share if self.correction is None else self.correction
        return f"the model corrects them itself {times(told)} ({of_all}, 95 % interval {low * 100:.0f} to {high * 100:.0f} %)"

    def _resolving(self) -> str:
        if self.retries < ENOUGH:
            return f"were {_times(self.retries)}: too few to say"
        sure = f"95 % interval {self.low * 100:.0f} to {self.high * 100:.0f} %"
        of_all = f"{self.successes:.0f} of {self.retries:.0f}"
        if self.high < HOPELESS:
            return f"do not resolve on retry ({of_all} retries worked, {sure})"
        if _none(self.successes):
            return f"have not resolved on retry so far ({of_all} retries worked, {sure})"
        if self.wait_ms is None or self.wait_rate is None:
            return f"resolve on retry {self.rate * 100:.0f} % of the time ({of_all} retries worked, {sure})"
        wait = f"after {self.wait_ms / 1000:g} s" if self.wait_ms >= 1_000 else "at once"
        return (
            f"resolve on retry {self.wait_rate * 100:.0f} % of the time {wait} ({self.at_wait.s:.0f} of "
            f"{self.at_wait.n:.0f} retries then; {of_all} after any wait, {sure})"
        )


def profile_of(document: Mapping[str, Any]) -> Profile:
    """
    Returns the profile that `Profile.document` gave. Raises TypeError or ValueError if *document* is no profile.
    """
    counts = {key: Count(*document[key]) for key in _COUNTS if key in document}
    made = Profile(**{**document, **counts})
    for name in ("retries", "successes", "rate", "low", "high"):
        if type(getattr(made, name)) not in (int, float) or getattr(made, name) < 0:
            raise ValueError(f"`{name}` of a profile is no number from 0 on")
    for number in (made.wait_ms, made.wait_rate, made.correction, *made.at_wait, *made.repaired, *made.corrected):
        if number is not None and (type(number) not in (int, float) or number < 0):
            raise ValueError("a count, wait or rate of a profile is no number from 0 on")
    if not isinstance(made.tool, str) or made.error not in NAMES:
        raise ValueError("a profile is of a tool and an error type")
    return made


class Tally(NamedTuple):
    """
    The sums over the cells of one tool and error type.
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


def profiles(tallies: Mapping[tuple[str, str], Tally], corrections: Corrections | None = None) -> list[Profile]:
    """
    Returns the profile of each (tool, error type), in the order of their names; *corrections* as they are served.
    """
    known = corrections or Corrections({})
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
            correction=known.rate(tool, error) if tally.corrected.n > 0 else None,
        )
        if prior is not None and count.n >= ENOUGH and high >= HOPELESS and not _none(count.s):
            profile = _with_wait(profile, tally.waits, prior)
        made.append(profile)
    return made


def _with_wait(profile: Profile, waits: Mapping[int, Count], prior: Beta) -> Profile:
    # Where nothing helps, no wait is the best. A wait is drawn to the rate of its own tool and error, with the strength that tools of this error are drawn with.
    own = Beta(profile.rate, prior.strength)
    known = sorted(wait for wait, count in waits.items() if count.n >= ENOUGH)
    if not known:
        return profile
    rates = [own.rate(waits[wait]) for wait in known]
    place = best_wait(rates)
    # Nor does a wait say anything after which fewer retries work than after any.
    if rates[place] < max(HOPELESS, (1 - WITHIN) * profile.rate):
        return profile
    return replace(profile, wait_ms=known[place], wait_rate=rates[place], at_wait=waits[known[place]])


def _times(n: float) -> str:
    whole = round(n)
    return "never retried" if whole == 0 else "retried once" if whole == 1 else f"retried {whole} times"


def _none(successes: float) -> bool:
    """
    So few that they are told as 0; decayed counts are no whole numbers.
    """
    return round(successes) == 0
