"""
Facts of a small world whose truth is known.
"""

import random

from typing import Final

from guardrails.core.retries.model import Count
from guardrails.core.retries.trail import WAITS_MS, Settled, extended, failure_of
from guardrails.offline.learning.facts import FOLDS, Correction, Fact, Facts


Truth = dict[tuple[str, str], tuple[float, ...]]

DAY: Final = 20_000
TRUTH: Final[Truth] = {
    ("search", "timeout"): (0.15, 0.3, 0.7, 0.75, 0.78, 0.8, 0.8, 0.8),
    ("search", "rate_limit"): (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.9),
    ("legacy", "server_error"): (0.02,) * 8,
    ("pay", "server_error"): (0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6),
    ("read", "not_found"): (0.1,) * 8,
}
"""Success by tool and error, after each of the waits that may be advised."""


def days(count: int, after: int = 0) -> range:
    """
    *count* days, *after* so many.
    """
    return range(DAY + after, DAY + after + count)


def world(when: range = days(6), retries: int = 400, *, seed: int = 1, truth: Truth = TRUTH) -> Facts:
    """
    *retries* a day of sessions in groups.
    """
    rng = random.Random(seed)
    rates_of = list(truth.items())
    facts = Facts()
    for day in (day for day in when for _ in range(retries)):
        (tool, error), rates = rng.choice(rates_of)
        attempt, place = rng.randrange(3), rng.randrange(len(WAITS_MS))
        trail = None
        for _ in range(attempt + 1):
            trail = extended(trail, Settled(tool, 1, error, 0))
        situation = failure_of(trail or {}, 60_000).retried(WAITS_MS[place])
        fold = rng.randrange(FOLDS)
        facts.add(Fact(day, fold, None), 1, 0)
        facts.add(Fact(day, fold, situation), 1, rng.random() < rates[place] * 0.9**attempt)
    return facts


def corrections(when: range = days(6), *, rate: float = 0.8, error: str = "not_found") -> Facts:
    """
    60 calls a day with other arguments after *error* of `book`.
    """
    rng = random.Random(1)
    facts = Facts()
    for day in (day for day in when for _ in range(60)):
        facts.add(Fact(day, rng.randrange(FOLDS), Correction("book", error)), 1, rng.random() < rate)
    return facts


def together(*parts: Facts) -> Facts:
    made = Facts()
    for part in parts:
        for fact, (n, s) in part.items():
            made.add(fact, n, s)
    return made


def flipped(facts: Facts, bad: range) -> Facts:
    """
    The facts with the outcomes of some days the wrong way round.
    """
    return Facts((fact, Count(n, n - s if fact.day in bad and fact.what else s)) for fact, (n, s) in facts.items())
