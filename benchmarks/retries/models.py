"""
The models that are compared: what people set by hand, tables, and logistic regressions.

Each is made from training failures and gives the probability that a retry works, for the retry that was made or for any
other delay.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.shrinkage import Count
from guardrails.core.retries.trail import Situation
from guardrails.offline.learning.beliefs import ALONE, RETRIES, believed
from guardrails.offline.learning.fit import fit, known_tools

from .dataset import Failure


Array = np.ndarray[Any, np.dtype[np.float64]]


TRANSIENT: Final = frozenset({"rate_limit", "timeout", "connection", "unavailable", "server_error"})
"""What botocore retries: throttling, timeouts, lost connections, 5xx."""
STRENGTH: Final = 20.0
"""Pseudo-counts by which a table leans on the rate of the level above."""
Key = Callable[[Failure, int], tuple[object, ...]]


class Model(Protocol):
    """
    Gives a probability for each failure, after *delay_ms* (or Retry-After, where that is longer) or after the wait that was
    really made.
    """

    def __call__(self, given: Sequence[Failure], delay_ms: int | None = None) -> Array: ...


Maker = Callable[[Sequence[Failure]], Model]


def wait_of(row: Failure, delay_ms: int | None) -> int:
    """
    The wait of a retry after *delay_ms* or Retry-After, or of the one that was made.
    """
    return row.delay_ms if delay_ms is None else max(delay_ms, row.failed.left_ms or 0)


def situation(row: Failure, delay_ms: int | None) -> Situation:
    """
    A retry after that wait, nothing done in between, or the one that was made.
    """
    return row.situation if delay_ms is None else row.failed.retried(wait_of(row, delay_ms))


def base_rate(rows: Sequence[Failure]) -> Model:
    """
    The same for all.
    """
    return _table(rows, [])


def static_flags(retried: Callable[[Failure], bool]) -> Maker:
    """
    Transient or not, with the success rate of each of the two.
    """
    return lambda rows: _table(rows, [lambda row, _: (retried(row),)])


def by_botocore(row: Failure) -> bool:
    """
    Whether botocore would try again, in either of its modes.
    """
    return row.error in TRANSIENT


def by_tool(rows: Sequence[Failure]) -> Model:
    """
    The rate of each tool and error type.
    """
    return _table(rows, [lambda row, _: (row.error,), lambda row, _: (row.tool, row.error)])


def by_delay(rows: Sequence[Failure]) -> Model:
    """
    The rate of each tool, error type and delay.
    """

    def key(row: Failure, delay_ms: int) -> tuple[object, ...]:
        return row.tool, row.error, row.failed.retried(delay_ms).delay

    return _table(rows, [lambda row, _: (row.error,), lambda row, _: (row.tool, row.error), key])


def _table(rows: Sequence[Failure], keys: Sequence[Key]) -> Model:
    """
    Success rates by ever finer keys, each leaning on the one above by `STRENGTH` pseudo-counts.
    """
    counts: list[dict[tuple[object, ...], list[int]]] = [defaultdict(lambda: [0, 0]) for _ in keys]
    for row in rows:
        for key, count in zip(keys, counts, strict=True):
            seen = count[key(row, row.delay_ms)]
            seen[0] += 1
            seen[1] += row.worked
    overall = sum(row.worked for row in rows) / len(rows)

    def score(given: Sequence[Failure], delay_ms: int | None = None) -> Array:
        made = np.full(len(given), overall)
        for at, row in enumerate(given):
            for key, count in zip(keys, counts, strict=True):
                n, s = count.get(key(row, wait_of(row, delay_ms)), (0, 0))
                made[at] = (s + STRENGTH * made[at]) / (n + STRENGTH)
        return made

    return score


def regression(rows: Sequence[Failure], *, leave_out: str | None = None) -> Model:
    """
    The library's own: fitted on counts and the shipped beliefs, scored by looking weights up. *leave_out* names a tool it
    has never seen.
    """
    counts: dict[Situation, Count] = {}
    for row in rows:
        if row.tool != leave_out:
            n, s = counts.get(row.situation, (0.0, 0.0))
            counts[row.situation] = Count(n + 1, s + row.worked)
    fitted = fit(counts, known_tools(counts), believed(RETRIES if rows else ALONE))
    return served(RetryModel(**fitted, evidence={}, corrections={}, sha256="", body={}))


def served(model: RetryModel) -> Model:
    """
    A model as it is served: what its file says of retries that were made, or of any other delay.
    """

    def score(given: Sequence[Failure], delay_ms: int | None = None) -> Array:
        return np.array([model.probability(situation(row, delay_ms)) for row in given])

    return score


LINEUP: Final[dict[str, Maker]] = {
    "base rate": base_rate,
    "static transient flags": static_flags(by_botocore),
    "rate per tool and error": by_tool,
    "rate per tool, error and delay": by_delay,
}
"""Name and maker of each model that the library's own is compared with, from the simplest on."""
