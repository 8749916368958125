"""
The beliefs about failures before any record says so: pseudo-retries that a model is fitted on like on any others.

The rates are judgements, set once. The beliefs about repaired and corrected calls follow 1,193 exact retries of public
agent traces. After a change 80 % of `exec_nonzero`, 94 % of `precondition` and 22 % of `code_error` worked; without one
2 % of `code_error` did. The beliefs about transient kinds follow the usual course of rate limits and outages. Evidence
outweighs them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from guardrails.core.retries.model import ANY, Count
from guardrails.core.retries.trail import Failure, Situation
from guardrails.core.values.types import ErrorType


RETRIES: Final = 25.0
"""Retries that the beliefs about one error type count for beside records."""
ALONE: Final = 4_000.0
"""The same if there are no records, so that the fit's penalty does not pull the rates together."""
CORRECTIONS: Final = 4.0
"""Corrected calls that they count for."""
ATTEMPT_ODDS: Final = 0.7
"""How much less likely each further try is."""
WAITS_S: Final = (0, 2, 5, 15, 60, 120)
HEADERS_S: Final = (1, 3, 7, 12, 25, 45, 90, 180)
HEADER_RATES: Final = (0.05, 0.85)
"""Of a retry before and after the time that a Retry-After header names."""


class Belief(NamedTuple):
    """
    The shares of calls that work after an error, of 1.
    """

    waits: list[float]
    """Repeated as it was, after each of `WAITS_S`; a single value: for any wait."""
    repaired: float
    """Repeated after something was changed."""
    corrected: float | None = None
    """With other arguments."""


_SHARES: Final = yaml.safe_load(Path(__file__).with_name("beliefs.yaml").read_text(encoding="utf-8"))
BELIEFS: Final[Mapping[ErrorType, Belief]] = {error: Belief(**shares) for error, shares in _SHARES.items()}


def believed(retries: float = RETRIES) -> Iterator[tuple[Situation, Count]]:
    """
    Returns the beliefs about retries as counts, those about one error type adding up to *retries*; in a fixed order.
    """
    for error, belief in BELIEFS.items():
        rates = list(_rates(error, belief))
        each = retries / len(rates)
        yield from ((situation, Count(each, each * rate)) for situation, rate in rates)


def believed_corrections() -> dict[str, Count]:
    """
    Returns the same of calls with other arguments, by error type.
    """
    rates = {error: belief.corrected for error, belief in BELIEFS.items()}
    return {error: Count(CORRECTIONS, CORRECTIONS * rate) for error, rate in rates.items() if rate is not None}


def _rates(error: ErrorType, belief: Belief) -> Iterator[tuple[Situation, float]]:
    """
    Returns every situation that a belief is about, and the share that works.
    """
    waits = belief.waits * (len(WAITS_S) // len(belief.waits))
    headers = (None, *HEADERS_S) if error in ("rate_limit", "unavailable") else (None,)
    for attempt in range(4):
        odds = ATTEMPT_ODDS**attempt
        for header in headers:
            left = None if header is None else header * 1000
            failure = Failure(ANY, error, attempt, attempt, attempt, 0, int(attempt > 0), 0, left)
            times = dict(zip(WAITS_S, waits, strict=True))
            if header is not None:
                times = {wait: HEADER_RATES[wait >= header] for wait in sorted({*WAITS_S, header, 2 * header})}
            for wait, rate in times.items():
                yield failure.retried(wait * 1000), rate * odds / (1 - rate + rate * odds)
                yield failure.retried(wait * 1000, between=True), belief.repaired
