"""
Promotion: what is new replaces what is served only if it is better, beyond noise, on sessions that neither has seen.
"""

import math

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .facts import UNDATED, Facts


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
"""Days that may be bad together; what is new must not be worse on older ones."""
LEAST: Final = 1e-3
"""Nothing is held to be surer than that: one surprise must not decide."""

Guess = Callable[[Any], float | None]
"""How likely the event of a fact works; None: not known."""


class Split(NamedTuple):
    """
    The counts to fit on, those that judge, and those of *fitted* that the newest days cannot have changed.
    """

    fitted: Facts
    held: Facts
    older: Facts


class Verdict(NamedTuple):
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


def split_of(counts: Facts) -> Split:
    """
    Returns the newest days with enough events to judge by against all before; of an only day, a third of its sessions.

    They hold a fifth of the events, at least 50 and no more than 200 if they can, and never more than what is left.
    """
    events: Counter[int] = Counter()
    for fact, count in counts.items():
        events[fact.day] += count.n  # type: ignore[assignment]
    days = counts.days
    if not days:
        return Split(counts, Facts(), Facts())
    total, (newest, *before) = sum(events[day] for day in days), reversed(days)
    first, held = newest, events[newest]
    for day in before:
        if held >= max(MIN_HELD, min(HELD_SHARE * total, HELD_MOST)) or held + events[day] > total / 2:
            break
        first, held = day, held + events[day]
    if first == days[0]:
        judging = counts.where(lambda fact: fact.day == first and not fact.fold % 3)
        return Split(counts.where(lambda fact: fact not in judging), judging, Facts())
    # Bad days that agree with each other judge and are fitted on only if they lie on both sides of the first that judges.
    older = counts.where(lambda fact: UNDATED < fact.day <= first - APART)
    older = older or counts.where(lambda fact: UNDATED < fact.day <= min(first - 1, newest - APART))
    return Split(counts.where(lambda fact: fact.day < first), counts.where(lambda fact: fact.day >= first), older)


def verdict_of(split: Split, new: Guess, present: Guess) -> Verdict | None:
    """
    Returns whether *new*, which was made of the fitted counts of *split*, should replace *present*. Returns None if there is
    nothing to judge by.

    It must save log loss by more than `ERRORS` standard errors, and lose no more than that on older days: days that are bad
    together judge it, and it was made of them, but no other day says what they say.
    """
    held, count = _compared(split.held, new, present, split.fitted)
    if held is None:
        return None
    gain, error = held.gain, held.error
    better, reason = False, f"better by {gain:.4f} +- {error or 0:.4f} nats each"
    if held.events < MIN_HELD or count < MIN_GROUPS or error is None:
        few = f"at least {MIN_HELD} in {MIN_GROUPS}"
        reason = f"too little to judge by: {held.events:.0f} held out in {count} groups of sessions ({few})"
    elif gain <= ERRORS * error:
        reason = f"not better beyond noise: {gain:+.4f} +- {error:.4f} nats each"
    else:
        older, _ = _compared(split.older, new, present, split.older)
        better = older is None or older.gain >= -ERRORS * (older.error or 0)
        if older is not None and not better:
            reason = (
                f"worse on {older.events:.0f} events of the days before: {older.new:.4f} nats each, {older.present:.4f} by what is "
                "served; look at the newest days, `--force` if the world has changed"
            )
    return held._replace(better=better, reason=reason)


def _compared(counts: Facts, new: Guess, present: Guess, learned: Facts) -> tuple[Verdict | None, int]:
    """
    Returns the losses on *counts* as a verdict that decides nothing yet, None without events, and the groups of sessions that they are of.
    """
    (n, s), groups = counts.total, _losses(counts, (new, present, lambda what: None), learned)
    if n <= 0:
        return None, 0
    mine, theirs, base = (math.fsum(each) / n for each in list(zip(*groups, strict=True))[1:])
    gain, count = theirs - mine, len(groups)
    spread = math.fsum((served - made - gain * weight) ** 2 for weight, made, served, _ in groups)
    error = math.sqrt(spread * count / (count - 1)) / n if count > 1 else None
    return Verdict(n, s / n, mine, theirs, base, gain, error, better=False, reason=""), count


def _losses(counts: Facts, guesses: Sequence[Guess], learned: Facts) -> list[list[float]]:
    """
    Returns for each group of sessions its events and the loss of each guess; the rate of what was *learned* stands for what is
    not known.
    """
    rate = learned.total.s / learned.total.n if learned else 0.5
    groups: dict[int, list[float]] = {}
    for (_, fold, what), (n, s) in counts.items():
        group = groups.setdefault(fold, [0.0] * (len(guesses) + 1))
        group[0] += n
        for at, guess in enumerate(guesses, 1):
            guessed = guess(what)
            p = min(max(rate if guessed is None else guessed, LEAST), 1 - LEAST)
            group[at] -= s * math.log(p) + (n - s) * math.log(1 - p)
    return list(groups.values())
