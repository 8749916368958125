"""
Shares as evidence: the more cautious end of a 95 % Wilson interval, and how it is said.
"""

import math

from collections.abc import Iterable, Mapping
from typing import Any, Final

from guardrails.core.retries.shrinkage import wilson
from guardrails.offline.quality.tally import Odds


Made = tuple[Any, str] | None
"""A setting and its evidence; None: the figures support none."""

WRONG_ALLOWED: Final = 0.05
"""Of the calls that a setting refuses, the share that may be refused wrongly."""
WRONG_BOUND: Final = 0.1
"""The same at the upper end of its interval: 35 repeats without a wrong one suffice."""
WRONG_SEEN: Final = 3
"""Calls that have to be seen before any share of them is called too large."""


def least(odds: Odds) -> float:
    """
    Returns the share that is surely reached.
    """
    return wilson(odds.count)[0]


def most(odds: Odds) -> float:
    """
    Returns the share that is surely not passed.
    """
    return wilson(odds.count)[1]


def right(odds: Odds) -> bool:
    """
    Returns whether what would be refused is pointless: none of it was seen to be wrong, and few are likely to be.

    One call that brought news outweighs any number of others. A policy that was made of recorded days must not refuse
    the honest work of those days.
    """
    return odds.s == odds.n and likely(odds)


def likely(odds: Odds) -> bool:
    """
    Returns whether the calls that would be refused are nearly always pointless: few seen to be wrong, and no more than
    twice as many likely.
    """
    return odds.n > 0 and odds.n - odds.s <= WRONG_ALLOWED * odds.n and least(odds) >= 1 - WRONG_BOUND


def wrong(odds: Odds) -> bool:
    """
    Returns whether surely more would be refused wrongly than is allowed.
    """
    missed = others(odds)
    return missed.s >= WRONG_SEEN and least(missed) > WRONG_ALLOWED


def others(odds: Odds) -> Odds:
    """
    Returns those that came out otherwise.
    """
    return Odds(odds.n, odds.n - odds.s)


def summed(parts: Iterable[Odds]) -> Odds:
    """
    Returns all of *parts* together.
    """
    whole = Odds()
    for part in parts:
        whole.n += part.n
        whole.s += part.s
    return whole


def within(odds: Mapping[int, Odds], window: int, after: int = 0) -> Odds:
    """
    Returns those at most *window* calls back, and more than *after*.
    """
    return summed(part for back, part in odds.items() if after < back <= window)


def of(odds: Odds) -> str:
    """
    Returns `7 of 20`.
    """
    return f"{odds.s:,} of {odds.n:,}"


def bound(sign: str, share: float) -> str:
    """
    Returns a bound in words, rounded to the side that promises less; *sign* is `>` or `<`.
    """
    per_mille = math.floor(share * 1000) if sign == ">" else math.ceil(share * 1000)
    return f"95 % sure {sign} {per_mille / 10:g} %"


def percent(share: float) -> str:
    """
    Returns a share of 1 in whole per cent.
    """
    return f"{100 * share:.0f} %"
