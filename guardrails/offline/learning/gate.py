"""
Promotion: what is new replaces what is served only if it is better, beyond noise, on sessions that neither has seen.
"""

import math

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from guardrails.core.retries.shrinkage import Count

from .facts import FOLDS, UNDATED, Fact


ERRORS: Final = 2.0
"""Standard errors that a gain must exceed."""
MIN_HELD: Final = 50
"""Held-out events below which nothing is judged."""
MIN_GROUPS: Final = 5
"""Groups of sessions below which nothing is known of the noise."""
HELD_SHARE: Final = 0.2
"""Of all events, what is held out at least, up to `HELD_MOST`: days that bring few judge together."""
HELD_MOST: Final = 200
APART: Final = 3
"""Days that may be bad together; older ones tell whether the newest have led a model away from what is known."""
LEAST: Final = 1e-3
"""Nothing is held to be surer than that: one surprise must not decide."""

Counts = Mapping[Fact, Count]
Guess = Callable[[Any], float | None]
"""How likely the event of a fact works; None: not known."""


class Split(NamedTuple):
    """
    The counts to fit on, those that judge, and those of *fitted* that the newest days cannot have changed.
    """

    fitted: Counts
    held: Counts
    older: Counts

    @property
    def days(self) -> tuple[int, int] | None:
        """
        The first and the last day that judges; None: none does.
        """
        days = [fact.day for fact in self.held]
        return (min(days), max(days)) if days else None


def split_of(counts: Counts) -> Split:
    """
    Returns the newest days with enough events to judge by against all before; of an only day, a third of its sessions.

    They hold a fifth of the events, at least 50 and no more than 200 if they can, and never more than what is left.
    """
    by_day: dict[int, float] = {}
    for fact, count in counts.items():
        if fact.day != UNDATED:
            by_day[fact.day] = by_day.get(fact.day, 0.0) + count.n
    if not by_day:
        return Split(counts, {}, {})
    total = sum(by_day.values())
    wanted = max(MIN_HELD, min(HELD_SHARE * total, HELD_MOST))
    days = sorted(by_day, reverse=True)
    first, held = days[0], by_day[days[0]]
    for day in days[1:]:
        if held >= wanted or held + by_day[day] > total / 2:
            break
        first, held = day, held + by_day[day]
    if first == days[-1]:
        return Split(
            {fact: count for fact, count in counts.items() if fact.day != first or fact.fold % 3},
            {fact: count for fact, count in counts.items() if fact.day == first and not fact.fold % 3},
            {},
        )
    fitted = {fact: count for fact, count in counts.items() if fact.day < first}
    # Bad days that agree with each other judge and are fitted on only if they lie on both sides of the first that judges.
    older = {fact: count for fact, count in fitted.items() if UNDATED < fact.day <= first - APART}
    older = older or {fact: count for fact, count in fitted.items() if UNDATED < fact.day <= days[0] - APART}
    return Split(fitted, {fact: count for fact, count in counts.items() if fact.day >= first}, older)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    The outcome of comparing what is new with what is served. Losses are nats per event.
    """

    events: float
    """Held-out retries, or calls with other arguments."""
    worked: float
    """Share of them."""
    new: float
    present: float
    base: float
    """Of saying one rate, that of the events that were learned from, each time."""
    gain: float
    """What the new one saves beside the present one."""
    error: float | None
    """Its standard error between groups of sessions; None: unknown."""
    better: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        return asdict(self)


def verdict_of(split: Split, new: Guess, present: Guess) -> Verdict | None:
    """
    Returns whether *new*, which was made of the fitted counts of *split*, should replace *present*. Returns None if there is
    nothing to judge by.

    It must save log loss by more than `ERRORS` standard errors. And it is no better if on older days, which it has seen, both
    the present one and a single rate do better: then the newest days, that judge it and that it was made of, agree in what
    no other day says.
    """
    held = split.held
    n, s = (math.fsum(count[at] for count in held.values()) for at in (0, 1))
    if n <= 0:
        return None
    rate = _rate(split.fitted)
    mine, theirs, base = (_losses(held, guess, rate) for guess in (new, present, _none))
    gains: dict[int, list[float]] = {}
    for fact, count in held.items():
        group = gains.setdefault(fact.fold % FOLDS, [0.0, 0.0])
        group[0] += count.n
        group[1] += theirs[fact] - mine[fact]
    gain = math.fsum(saved for _, saved in gains.values()) / n
    groups = len(gains)
    spread = math.fsum((saved - gain * weight) ** 2 for weight, saved in gains.values())
    error = math.sqrt(spread * groups / (groups - 1)) / n if groups > 1 else math.inf
    reason = f"better by {gain:.4f} +- {error:.4f} nats each"
    better = False
    if n < MIN_HELD or groups < MIN_GROUPS:
        reason = f"too little to judge by: {n:.0f} held out in {groups} groups of sessions (at least {MIN_HELD} in {MIN_GROUPS})"
    elif not gain > max(0.0, ERRORS * error):
        reason = f"not better beyond noise: {gain:+.4f} +- {error:.4f} nats each"
    elif (against := _against(split.older, new, present)) is not None:
        reason = against
    else:
        better = True
    total = [math.fsum(losses.values()) / n for losses in (mine, theirs, base)]
    return Verdict(
        events=n,
        worked=s / n,
        new=total[0],
        present=total[1],
        base=total[2],
        gain=gain,
        error=error if groups > 1 else None,
        better=better,
        reason=reason,
    )


def _against(older: Counts, new: Guess, present: Guess) -> str | None:
    if not older:
        return None
    rate, n = _rate(older), math.fsum(count.n for count in older.values())
    mine, theirs, base = (math.fsum(_losses(older, guess, rate).values()) / n for guess in (new, present, _none))
    if mine <= max(theirs, base):
        return None
    return (
        f"worse than the base rate on {n:.0f} of the days before: {mine:.4f} nats each, {base:.4f} by the base rate; look at the "
        "newest days, `--force` if the world has changed"
    )


def _none(what: Any) -> None:
    return None


def _rate(counts: Counts) -> float:
    n, s = (math.fsum(count[at] for count in counts.values()) for at in (0, 1))
    return s / n if n > 0 else 0.5


def _losses(counts: Counts, guess: Guess, otherwise: float) -> dict[Fact, float]:
    made = {}
    for fact, (n, s) in counts.items():
        said = guess(fact.what)
        p = min(max(otherwise if said is None else said, LEAST), 1 - LEAST)
        made[fact] = -(s * math.log(p) + (n - s) * math.log(1 - p))
    return made
