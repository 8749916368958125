"""
Curves of a model: how its probabilities hold, what it learns from how much, what its decisions are worth at which cost.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from guardrails.core.retries.shrinkage import Count, wilson
from guardrails.offline.learning.candidate import candidate
from guardrails.offline.learning.rows.cells import Cell

from .evaluate import Trial
from .metrics import Array, decision_value
from .models import LINEUP
from .recorded import served


TABLE: Final = "rate per tool and error"
WAIT_COST_PER_S: Final = 0.002


class Bin(NamedTuple):
    """
    Failures of about one probability: the mean of what was predicted, the share that worked with its 95 % Wilson
    interval, how many there are.
    """

    predicted: float
    observed: float
    low: float
    high: float
    n: int


def reliability(p: Array, worked: Array, bins: int = 10) -> list[Bin]:
    """
    *bins* equally wide ranges of *p*, those that are not empty.
    """
    place = np.minimum((p * bins).astype(int), bins - 1)
    made = []
    for at in np.unique(place):
        mine = place == at
        n = int(mine.sum())
        low, high = wilson(Count(n, float(worked[mine].sum())))
        made.append(Bin(float(p[mine].mean()), float(worked[mine].mean()), low, high, n))
    return made


class Point(NamedTuple):
    """
    Skill of the regression and of a table, both of the first *labelled* failures.
    """

    labelled: int
    model: float
    table: float


def learning(trial: Trial, cells: Sequence[Cell], days: Sequence[int]) -> Iterator[Point]:
    """
    What the first one, two, ... of *days* of *cells* teach; the failures of *trial* are the same, in the same order.
    """
    first = min(cell.day for cell in cells)
    for count in days:
        kept = [cell for cell in cells if cell.day < first + count]
        labelled = round(sum(cell.n for cell in kept))
        model = served(candidate(trial.spec, kept).model)
        table = LINEUP[TABLE](trial.spec, trial.training[:labelled])
        yield Point(labelled, trial.skill(model(trial.test)), trial.skill(table(trial.test)))


def values(trial: Trial, predicted: Array, retry_costs: Sequence[float]) -> list[float]:
    """
    Mean value of the decisions that *predicted*, of shape (failures, waits), leads to, at each cost of a retry.
    """
    return [decision_value(predicted, trial.truth, trial.waits_s, cost, WAIT_COST_PER_S) for cost in retry_costs]
