"""
Drift: tools whose retries of the newest day do not come out as the served model predicts.
"""

import math

from collections.abc import Sequence
from typing import Final, NamedTuple

from guardrails.core.retries.model import RetryModel
from guardrails.offline.learning.labels import NO_ACTION
from guardrails.offline.learning.rows.cells import Cell

from .design import logits
from .gate import held_out


ALARM: Final = 5.0
"""Standard deviations from which on a difference is told; on 80 pairs of tool and error none reached it without a change."""
MIN_RETRIES: Final = 10


class Drift(NamedTuple):
    """
    One tool and error type whose retries came out otherwise than predicted.
    """

    tool: str
    error: str
    retries: float
    worked: float
    predicted: float
    """Successes that the model predicts."""
    z: float
    """Difference in standard deviations of the prediction; below 0: fewer worked."""

    def sentence(self) -> str:
        """
        Returns the drift in words.
        """
        return (
            f"`{self.tool}` after `{self.error}`: {self.worked:.0f} of {self.retries:.0f} retries worked, "
            f"{self.predicted:.0f} were predicted (z {self.z:+.1f})"
        )


def drifts(model: RetryModel, cells: Sequence[Cell], alarm: float = ALARM) -> list[Drift]:
    """
    Returns the pairs of tool and error type in *cells*, those of one day, that differ from the prediction of *model* by
    *alarm* or more. The worst come first.
    """
    labelled = sorted(cell for cell in cells if cell.action != NO_ACTION and cell.n > 0)
    if not labelled:
        return []
    from guardrails.offline.learning.numeric import np

    p = 1 / (1 + np.exp(-logits(held_out(model, labelled), model.intercept, model.terms)))
    sums: dict[tuple[str, str], list[float]] = {}
    for cell, chance in zip(labelled, p.tolist(), strict=True):
        total = sums.setdefault((cell.tool, cell.error_type), [0.0] * 4)
        for at, part in enumerate((cell.n, cell.s, cell.n * chance, cell.n * chance * (1 - chance))):
            total[at] += part
    found = [
        Drift(tool, error, n, s, predicted, (s - predicted) / math.sqrt(variance))
        for (tool, error), (n, s, predicted, variance) in sums.items()
        if n >= MIN_RETRIES and variance > 0
    ]
    return sorted((one for one in found if abs(one.z) >= alarm), key=lambda one: (-abs(one.z), one.tool, one.error))
