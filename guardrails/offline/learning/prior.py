"""
The beliefs about failures before any record says so: cells that a model is fitted on like on any others.

The rates are judgements, set once. The beliefs about repaired and corrected calls follow 1,193 exact retries of public
agent traces. After a change 80 % of `exec_nonzero`, 94 % of `precondition` and 22 % of `code_error` worked; without one
2 % of `code_error` did. The beliefs about transient kinds follow the usual course of rate limits and outages. Evidence
outweighs them.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from guardrails.core.retries.context import Settled, action_of, context_of
from guardrails.core.retries.model import Declared
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import ErrorType


DECLARED: Final = Declared(2.0, -4.0, 20.0)
"""A tool's `retryable: true` makes a retry e^2 = 7 times as likely to work, `false` e^4 = 55 times as unlikely; after 20
retries half as much in log odds."""
RETRIES: Final = 40.0
"""Retries that the prior of one error type counts for beside records."""
ALONE: Final = 4_000.0
"""The same if there are no records, so that the fit's penalty does not pull the rates together."""
CORRECTIONS: Final = 4.0
"""Corrected calls that the prior of one error type counts for."""
ATTEMPT_ODDS: Final = 0.7
"""How much less likely each further try is."""
ATTEMPTS: Final = 4
WAITS_S: Final = (0, 2, 5, 15, 60, 120)
HEADERS_S: Final = (1, 3, 7, 12, 25, 45, 90, 180)
HEADER_RATES: Final = (0.05, 0.85)
"""Of a retry before and after the time that a Retry-After header names."""


class Belief(NamedTuple):
    """
    The shares of calls that work after an error, of 1.
    """

    waits: tuple[float, ...]
    """Repeated as it was, after each of `WAITS_S`; a single value: for any wait."""
    repaired: float
    """Repeated after something was changed."""
    corrected: float | None = None
    """With other arguments."""


BELIEFS: Final[Mapping[ErrorType, Belief]] = {
    "rate_limit": Belief((0.2, 0.4, 0.55, 0.65, 0.7, 0.75), 0.6),
    "timeout": Belief((0.4, 0.44, 0.47, 0.49, 0.5, 0.5), 0.48),
    "connection": Belief((0.45, 0.5, 0.53, 0.55, 0.56, 0.56), 0.53),
    "unavailable": Belief((0.2, 0.3, 0.4, 0.5, 0.55, 0.6), 0.45),
    "server_error": Belief((0.35, 0.4, 0.43, 0.45, 0.46, 0.46), 0.43),
    "auth": Belief((0.02,), 0.3),
    "permission": Belief((0.01,), 0.1),
    "validation": Belief((0.01,), 0.05, 0.75),
    "not_found": Belief((0.02,), 0.2, 0.5),
    "conflict": Belief((0.08,), 0.5, 0.4),
    "precondition": Belief((0.03,), 0.9),
    "cancelled": Belief((0.05,), 0.1),
    "tool_missing": Belief((0.005,), 0.02),
    "invalid_path": Belief((0.01,), 0.2, 0.6),
    "too_large": Belief((0.01,), 0.1, 0.7),
    "exec_nonzero": Belief((0.04,), 0.75),
    "code_error": Belief((0.02,), 0.22, 0.6),
    "other": Belief((0.05,), 0.2, 0.3),
}


class Believed(NamedTuple):
    """
    A cell of no tool in particular.
    """

    error: ErrorType
    context: int
    action: int
    n: float
    s: float


def prior_cells(spec: FeatureSpec, retries: float = RETRIES) -> list[Believed]:
    """
    Returns the beliefs as cells, those of one error type counting for *retries*; in a fixed order.
    """
    made: list[Believed] = []
    for error, belief in BELIEFS.items():
        rates = list(_rates(spec, error, belief))
        made += [
            Believed(error, context, action, retries / len(rates), p * retries / len(rates))
            for context, action, p in rates
        ]
    return made


def prior_corrections() -> dict[str, tuple[float, float]]:
    """
    Returns by error type the corrected calls that the beliefs count for, and those that worked.
    """
    believed = {error: belief.corrected for error, belief in BELIEFS.items()}
    return {error: (CORRECTIONS, CORRECTIONS * rate) for error, rate in believed.items() if rate is not None}


def _rates(spec: FeatureSpec, error: ErrorType, belief: Belief) -> Iterator[tuple[int, int, float]]:
    """
    Returns (context, action, success) of every situation that a belief is about.
    """
    waits = belief.waits * len(WAITS_S) if len(belief.waits) == 1 else belief.waits
    headers = (None, *HEADERS_S) if error in ("rate_limit", "unavailable") else (None,)
    for worked in (0, 3):
        for attempt in range(ATTEMPTS):
            odds = ATTEMPT_ODDS**attempt
            trail = [Settled("", i, None, 0) for i in range(worked)] + [Settled("", -1, error, 0)] * attempt
            for header in headers:
                after = None if header is None else header * 1000
                context = context_of(spec, trail, Settled("", -1, error, 0), 60_000, after)
                times = dict(zip(WAITS_S, waits, strict=True))
                if header is not None:
                    times = {wait: HEADER_RATES[wait >= header] for wait in sorted({*WAITS_S, header, 2 * header})}
                for wait, rate in times.items():
                    p = _scaled(rate, odds)
                    yield context.code, action_of(spec, context, wait * 1000, between=False), p
                    yield context.code, action_of(spec, context, wait * 1000, between=True), belief.repaired


def _scaled(p: float, odds: float) -> float:
    return p * odds / (1 - p + p * odds)
