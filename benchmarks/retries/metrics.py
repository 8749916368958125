"""
How good probabilities are, and what decisions made from them are worth.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from sklearn.metrics import average_precision_score, roc_auc_score


BINS: Final = 20
SMALLEST: Final = 1e-7

Array = np.ndarray[Any, np.dtype[np.float64]]


class Quality(NamedTuple):
    """
    Figures of one model on held-out failures.
    """

    log_loss: float
    brier: float
    ece: float
    roc_auc: float
    pr_auc: float


def log_loss(p: Array, worked: Array) -> float:
    """
    Mean negative log likelihood, in nats.
    """
    p = np.clip(p, SMALLEST, 1 - SMALLEST)
    return float(-np.mean(np.where(worked > 0, np.log(p), np.log1p(-p))))


def calibration_error(p: Array, worked: Array) -> float:
    """
    Expected calibration error: mean distance of predicted and observed share over 20 equally wide bins, by size.
    """
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    predicted = np.bincount(bins, p, BINS)
    observed = np.bincount(bins, worked, BINS)
    return float(np.abs(predicted - observed).sum() / len(p))


def quality(p: Array, worked: Array) -> Quality:
    """
    All figures; a model that says the same of every failure ranks like chance.
    """
    return Quality(
        log_loss(p, worked),
        float(np.mean((p - worked) ** 2)),
        calibration_error(p, worked),
        float(roc_auc_score(worked, p)),
        float(average_precision_score(worked, p)),
    )


def decision_value(
    predicted: Array,
    truth: Array,
    waits_s: Array,
    retry_cost: float,
    wait_cost_per_s: float,
    within: float | None = None,
) -> float:
    """
    Mean value of the best action by *predicted*, judged by *truth*; these and the ascending *waits_s* are of shape
    (failures, waits).

    A success is worth 1; a retry costs *retry_cost* and its wait; not to retry is worth 0. With *within*, the action is what
    is served: the smallest wait, of those that pay, whose success is at most that share below the best.
    """
    costs = retry_cost + wait_cost_per_s * waits_s
    value = predicted - costs
    chosen = value.argmax(axis=1)
    if within is not None:
        paying = np.where(value > 0, predicted, 0.0)
        chosen = (paying >= (1 - within) * paying.max(axis=1, keepdims=True)).argmax(axis=1)
    rows = np.arange(len(chosen))
    pays = value.max(axis=1) > 0
    return float(np.where(pays, (truth - costs)[rows, chosen], 0.0).mean())
