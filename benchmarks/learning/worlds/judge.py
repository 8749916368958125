"""
Models of some worlds, judged on another: what is known of failures in general, where no tool is known.

Skill is the share of the way from the base rate's log loss to the limit's; value is that of the decisions as they are served, in
per cent of those by the limit. The limit of the new worlds knows when everything hidden ends, so that 1 is out of reach there: what
can be reached is shown by a model of the world itself, and by boosted trees of unbucketed times.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from benchmarks.retries.dataset import Failure, waits_ms
from benchmarks.retries.metrics import Array, decision_value, log_loss, quality
from benchmarks.retries.models import LINEUP, TRANSIENT, Model, boosted, regression
from benchmarks.retries.recorded import served
from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.spec import FeatureSpec
from guardrails.offline.learning.candidate import cold_model
from guardrails.offline.learning.fit import RICH, TERMS
from guardrails.policy.feature_file import shipped_spec

from .rows import NAMES, Retried, rows


TRAINING_DAYS: Final = range(48)
TEST_DAYS: Final = range(48, 60)
OWN_FEW: Final = 1_000
"""Retries of the world itself beside those of the others."""
FLAGS: Final = "flags, back-off, header"
COLD: Final = "shipped, untrained"
OTHERS: Final = "the other worlds"
WITH_FEW: Final = f"the others + {OWN_FEW:,} of its own"
OWN: Final = "its own"
TREES: Final = "its own, boosted trees"
MODELS: Final = (FLAGS, COLD, OTHERS, WITH_FEW, OWN, TREES)

Fit = Callable[[FeatureSpec, Sequence[Failure]], Model]
"""Makes a model of failures; `regression` is the library's own."""


class Sizes(NamedTuple):
    """
    How many retries are learned from, of each world, and judged by.
    """

    learned: int = 20_000
    tested: int = 12_000


QUICK: Final = Sizes(5_000, 4_000)


class Figures(NamedTuple):
    """
    What a test says of a model.
    """

    log_loss: float
    skill: float
    ece: float
    roc_auc: float
    value: float
    """In per cent of the limit's, at the shipped costs."""


class Test:
    """
    Retried failures of one world that no model has seen.
    """

    def __init__(self, spec: FeatureSpec, made: Sequence[Retried]) -> None:
        self.spec = spec
        self.made = made
        self.failures = [one.failure for one in made]
        self.worked = np.array([float(one.failure.worked) for one in made])
        self.truth = np.array([[chance.told for chance in one.after] for one in made])
        self.waits_s = np.array([waits_ms(spec, row.context) for row in self.failures]) / 1000
        self.floor = log_loss(np.full(len(made), self.worked.mean()), self.worked)
        self.best = log_loss(np.array([one.chance.told for one in made]), self.worked)
        self.most = self.value(self.truth)

    def value(self, predicted: Array) -> float:
        """
        Of the decisions by *predicted*, the chances after each wait, as the library takes them.
        """
        stakes = Stakes()
        return decision_value(
            predicted, self.truth, self.waits_s, stakes.retry_cost, stakes.wait_cost_per_s, stakes.within
        )

    def predicted(self, model: Model) -> Array:
        return np.stack([model(self.failures, delay) for delay in self.spec.delays_ms], axis=1)

    def figures(self, model: Model) -> Figures:
        p = model(self.failures)
        found = quality(p, self.worked)
        skill = (self.floor - found.log_loss) / (self.floor - self.best)
        share = 100 * self.value(self.predicted(model)) / self.most
        return Figures(found.log_loss, skill, found.ece, found.roc_auc, share)

    def flags(self) -> float:
        """
        The value of static flags: transient errors after a second or Retry-After, others never.
        """
        first = np.minimum((self.waits_s < 1.0).sum(axis=1), self.truth.shape[1] - 1)
        there = np.arange(self.truth.shape[1]) == first[:, None]
        transient = np.array([row.error in TRANSIENT for row in self.failures])
        return 100 * self.value(np.where(transient[:, None] & there, 1.0, 0.0)) / self.most


class Data:
    """
    The retries of all worlds of a *seed*.
    """

    def __init__(self, sizes: Sizes, seed: int = 1, names: Sequence[str] = NAMES) -> None:
        self.spec = shipped_spec()
        self.names = names
        self.training = {name: rows(name, self.spec, TRAINING_DAYS, sizes.learned, seed=seed) for name in names}
        self.tests = {
            name: Test(self.spec, rows(name, self.spec, TEST_DAYS, sizes.tested, seed=seed, limit=True))
            for name in names
        }

    def others(self, name: str) -> list[Failure]:
        """
        What can be learned from all worlds but *name*.
        """
        return [one.failure for other in self.names if other != name for one in self.training[other]]

    def own(self, name: str, count: int | None = None) -> list[Failure]:
        return [one.failure for one in self.training[name][:count]]


LIBRARY: Final = regression((*TERMS, *RICH))


def left_out(data: Data, *, fit: Fit = LIBRARY, trees: bool = True) -> dict[str, dict[str, Figures]]:
    """
    By world and model: the figures on that world, which the models of others never saw.
    """
    cold = served(cold_model(data.spec).model)
    found = {}
    for name, test in data.tests.items():
        others = data.others(name)
        made: dict[str, Model] = {
            COLD: cold,
            OTHERS: fit(data.spec, others),
            WITH_FEW: fit(data.spec, [*others, *data.own(name, OWN_FEW)]),
            OWN: fit(data.spec, data.own(name)),
        }
        if trees:
            made[TREES] = boosted(raw=True)(data.spec, data.own(name))
        flags = test.figures(LINEUP["static transient flags"](data.spec, others))._replace(value=test.flags())
        found[name] = {FLAGS: flags} | {model: test.figures(one) for model, one in made.items()}
    return found


def mean(found: Mapping[str, Mapping[str, Figures]], model: str) -> Figures:
    """
    The mean over worlds.
    """
    columns = zip(*(figures[model] for figures in found.values()), strict=True)
    return Figures(*(sum(column) / len(found) for column in columns))
