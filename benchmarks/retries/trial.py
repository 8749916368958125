"""
How well the retry model does on simulated tools, between the base rate and the best that anyone could do.

Trained on days 0 to 47, judged on sessions of days 48 to 59: outages are shared by sessions, so that only time tells
training and test apart. Skill is the share of the way from the base rate's log loss to the bound's.
"""

import itertools

from typing import Final

import numpy as np

from guardrails.core.retries.trail import WAITS_MS

from .dataset import failures, waits_ms
from .models import TRANSIENT, Array, Model, flags, regression
from .sessions import World, stream
from .world import TOOLS


TRAINING_DAYS: Final = range(48)
TEST_DAYS: Final = range(48, 60)
STAKES: Final = ((0.05, 0.001), (0.1, 0.002), (0.25, 0.002), (0.5, 0.002))
"""Cost of a retry and of a second's waiting, where a success is worth 1."""
SMALLEST: Final = 1e-7


def log_loss(p: Array, worked: Array) -> float:
    """
    Mean negative log likelihood, in nats.
    """
    p = np.clip(p, SMALLEST, 1 - SMALLEST)
    return float(-np.mean(np.where(worked > 0, np.log(p), np.log1p(-p))))


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


class Trial:
    """
    Training and test failures, and what the test says of a model.
    """

    def __init__(self, world: World, labelled: int, tested: int) -> None:
        self.training = list(itertools.islice(failures(stream(world, TRAINING_DAYS)), labelled))
        self.test = list(itertools.islice(failures(stream(world, TEST_DAYS), bound=True), tested))
        self.worked = np.array([float(row.worked) for row in self.test])
        self.bound = np.array([row.bound for row in self.test])
        self.truth = np.array([row.after for row in self.test])
        self.waits_s = np.array([waits_ms(row.failed) for row in self.test]) / 1000
        self.floor = log_loss(np.full(len(self.test), sum(row.worked for row in self.training) / labelled), self.worked)
        self.best = log_loss(self.bound, self.worked)

    def skill(self, p: Array) -> float:
        return (self.floor - log_loss(p, self.worked)) / (self.floor - self.best)

    def predicted(self, model: Model) -> Array:
        """
        Success after each wait that may be advised, of shape (failures, waits).
        """
        return np.stack([model(self.test, delay) for delay in WAITS_MS], axis=1)

    def shares(self, predicted: Array, within: float | None = None) -> list[float]:
        """
        Per cent of the value of the bound's decisions, for each of `STAKES`.
        """
        return [
            100
            * decision_value(predicted, self.truth, self.waits_s, *stakes, within)
            / decision_value(self.truth, self.truth, self.waits_s, *stakes)
            for stakes in STAKES
        ]

    def flags(self) -> Array:
        """
        What static flags decide, as probabilities: a transient error after Retry-After or a second, others never.
        """
        transient = np.array([row.error in TRANSIENT for row in self.test])
        first = np.minimum((self.waits_s < 1.0).sum(axis=1), self.truth.shape[1] - 1)
        return np.where(transient[:, None] & (np.arange(self.truth.shape[1]) == first[:, None]), 1.0, 0.0)


def unseen(trial: Trial) -> dict[str, float]:
    """
    Log loss over failures of tools that training left out, each tool in turn.
    """
    by_hand, known = flags(trial.training), regression(trial.training)
    lost = {"static transient flags": 0.0, "logistic regression": 0.0, "logistic regression, tool known": 0.0}
    for tool in TOOLS:
        rows = [row for row in trial.test if row.tool == tool.name]
        mine = np.array([row.tool == tool.name for row in trial.test])
        worked = trial.worked[mine]
        model = regression(trial.training, leave_out=tool.name)
        for name, p in (
            ("static transient flags", by_hand(rows)),
            ("logistic regression", model(rows)),
            ("logistic regression, tool known", known(rows)),
        ):
            lost[name] += log_loss(p, worked) * len(rows) / len(trial.test)
    return lost
