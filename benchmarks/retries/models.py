"""
The models that are compared: what people set by hand, and the library's own.

Each is made from training failures and gives the probability that a retry works, for the retry that was made or for any
other delay.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from guardrails.core.retries.model import Count, RetryModel
from guardrails.core.retries.trail import Situation
from guardrails.offline.learning.beliefs import ALONE, RETRIES, believed
from guardrails.offline.learning.train import fit, known_tools

from .dataset import Failure


Array = np.ndarray[Any, np.dtype[np.float64]]
TRANSIENT: Final = frozenset({"rate_limit", "timeout", "connection", "unavailable", "server_error"})
"""What botocore retries, in either of its modes: throttling, timeouts, lost connections, 5xx."""


class Model(Protocol):
    """
    Gives a probability for each failure, after *delay_ms* (or Retry-After, where that is longer) or after the wait that was
    really made.
    """

    def __call__(self, given: Sequence[Failure], delay_ms: int | None = None) -> Array: ...


def flags(rows: Sequence[Failure]) -> Model:
    """
    Transient or not, with the success rate of each of the two.
    """
    worked = {
        transient: np.mean([row.worked for row in rows if (row.error in TRANSIENT) is transient])
        for transient in (True, False)
    }
    return lambda given, delay_ms=None: np.array([worked[row.error in TRANSIENT] for row in given])


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
    model = RetryModel(**fitted, evidence={}, corrections={}, body={})

    def situation(row: Failure, delay_ms: int | None) -> Situation:
        if delay_ms is None:
            return row.situation
        return row.failed.retried(max(delay_ms, row.failed.left_ms or 0))

    return lambda given, delay_ms=None: np.array([model.probability(situation(row, delay_ms)) for row in given])
