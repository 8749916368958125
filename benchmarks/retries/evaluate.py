"""
How well the retry model does on simulated tools, between the base rate and the best that anyone could do.

    python -m benchmarks.retries.evaluate                # 600,000 labelled failures, about five minutes on one core
    python -m benchmarks.retries.evaluate --labelled 25000 --quick

Trained on days 0 to 47, judged on sessions of days 48 to 59: outages are shared by sessions, so that only time tells
training and test apart. Skill is the share of the way from the base rate's log loss to the bound's.
"""

import argparse
import itertools
import json
import math
import sys
import time

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.spec import FeatureSpec
from guardrails.offline.learning.fit import RICH, TERMS
from guardrails.policy.feature_file import shipped_spec

from .dataset import Failure, failures, waits_ms
from .metrics import Array, decision_value, log_loss, quality
from .models import LINEUP, TRANSIENT, Maker, Model, regression
from .sessions import World, stream
from .world import TOOLS


TRAINING_DAYS: Final = range(48)
TEST_DAYS: Final = range(48, 60)
STAKES: Final = ((0.05, 0.001), (0.1, 0.002), (0.25, 0.002), (0.5, 0.002))
"""Cost of a retry and of a second's waiting, where a success is worth 1."""
CURVE: Final = (400, 1_500, 6_500, 25_000, 125_000)
SERVED: Final = "logistic regression, rich"
"""What `guardrails train` makes of so many failures."""


class Trial:
    """
    Training and test failures, and what the test says of a model.
    """

    def __init__(self, spec: FeatureSpec, world: World, labelled: int, tested: int) -> None:
        self.spec = spec
        self.training = list(itertools.islice(failures(spec, stream(world, TRAINING_DAYS)), labelled))
        self.test = list(itertools.islice(failures(spec, stream(world, TEST_DAYS), bound=True), tested))
        self.worked = np.array([float(row.worked) for row in self.test])
        self.bound = np.array([row.bound for row in self.test])
        self.truth = np.array([row.after for row in self.test])
        self.waits_s = np.array([waits_ms(spec, row.context) for row in self.test]) / 1000
        self.floor = log_loss(np.full(len(self.test), sum(row.worked for row in self.training) / labelled), self.worked)
        self.best = log_loss(self.bound, self.worked)

    def skill(self, p: Array) -> float:
        return (self.floor - log_loss(p, self.worked)) / (self.floor - self.best)

    def judged(self, model: Model, seconds: float) -> dict[str, float]:
        p = model(self.test)
        return {"skill": self.skill(p), **quality(p, self.worked)._asdict(), "fit_cpu_s": seconds}

    def predicted(self, model: Model) -> Array:
        """
        Success after each wait that may be advised, of shape (failures, waits).
        """
        return np.stack([model(self.test, delay) for delay in self.spec.delays_ms], axis=1)

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


def made(trial: Trial, maker: Maker, rows: Sequence[Failure]) -> tuple[Model, float]:
    began = time.process_time()
    model = maker(trial.spec, rows)
    return model, time.process_time() - began


def evaluate(trial: Trial, *, quick: bool) -> dict[str, Any]:
    """
    All tables as one JSON value.
    """
    names = [name for name in LINEUP if not (quick and "boosted" in name)]
    models, table, values = {}, {}, {}
    for name in names:
        say(f"{name} ...")
        models[name], seconds = made(trial, LINEUP[name], trial.training)
        table[name] = trial.judged(models[name], seconds)
        predicted = trial.predicted(models[name])
        values[name] = trial.shares(predicted)
        if name == SERVED:
            values[f"{name}, as served"] = trial.shares(predicted, Stakes().within)
    values["static flags, backoff, header"] = trial.shares(trial.flags())
    table["bound"] = {"skill": 1.0, **quality(trial.bound, trial.worked)._asdict(), "fit_cpu_s": 0.0}
    found = {
        "labelled": len(trial.training),
        "tested": len(trial.test),
        "base_rate": float(trial.worked.mean()),
        "mean_bound": float(trial.bound.mean()),
        "models": table,
        "decision_value_percent": {"stakes": STAKES, **values},
        "learning_curve": curve(trial),
        "unseen_tool": unseen(trial),
    }
    if not quick:
        found["without"] = ablation(trial)
    return found


def curve(trial: Trial) -> list[dict[str, float]]:
    """
    Skill by training size.
    """
    say("learning curve ...")
    sizes = [size for size in CURVE if size < len(trial.training)]
    return [
        {
            "labelled": size,
            "terms": trial.skill(regression(TERMS)(trial.spec, trial.training[:size])(trial.test)),
            "rich": trial.skill(regression((*TERMS, *RICH))(trial.spec, trial.training[:size])(trial.test)),
            "rate per tool and error": trial.skill(
                LINEUP["rate per tool and error"](trial.spec, trial.training[:size])(trial.test)
            ),
        }
        for size in sizes
    ]


def unseen(trial: Trial) -> dict[str, float]:
    """
    Log loss over failures of tools that training left out, each tool in turn.
    """
    say("tools never seen ...")
    flags = np.array(LINEUP["static transient flags"](trial.spec, trial.training)(trial.test))
    lost = {"static transient flags": 0.0, "logistic regression": 0.0, "logistic regression, tool known": 0.0}
    known = regression(TERMS)(trial.spec, trial.training)
    for tool in TOOLS:
        rows = [row for row in trial.test if row.tool == tool.name]
        mine = np.array([row.tool == tool.name for row in trial.test])
        worked = trial.worked[mine]
        model = regression(TERMS, leave_out=tool.name)(trial.spec, trial.training)
        for name, p in (
            ("static transient flags", flags[mine]),
            ("logistic regression", model(rows)),
            ("logistic regression, tool known", known(rows)),
        ):
            lost[name] += log_loss(p, worked) * len(rows) / len(trial.test)
    return lost


def ablation(trial: Trial) -> dict[str, float]:
    """
    Skill that each factor of the rich terms is worth: with all, less without it.
    """
    terms = (*TERMS, *RICH)
    factors = sorted({name for term in terms for name in term} - {"tool", "error", "source"})
    whole = trial.skill(regression(terms)(trial.spec, trial.training)(trial.test))
    lost = {}
    for factor in factors:
        say(f"without {factor} ...")
        left = tuple(term for term in terms if factor not in term)
        lost[factor] = whole - trial.skill(regression(left)(trial.spec, trial.training)(trial.test))
    return lost


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(found: dict[str, Any]) -> None:
    """
    The tables for a person.
    """
    print(
        f"{found['labelled']:,} labelled failures to learn from, {found['tested']:,} to judge by, {found['base_rate']:.3f} of them worked"
    )
    print(
        f"\n{'model':36}{'log loss':>9}{'skill':>7}{'Brier':>8}{'ECE':>7}{'ROC-AUC':>9}{'PR-AUC':>8}{'fit CPU s':>11}"
    )
    for name, row in found["models"].items():
        print(
            f"{name:36}{row['log_loss']:9.4f}{row['skill']:7.3f}{row['brier']:8.4f}{row['ece']:7.4f}"
            f"{row['roc_auc']:9.4f}{row['pr_auc']:8.3f}{row['fit_cpu_s']:11.1f}"
        )
    stakes = "".join(f"{f'{retry:g} + {wait:g}/s':>14}" for retry, wait in STAKES)
    print(f"\n{'value of decisions, % of the bound':36}{stakes}")
    for name, shares in found["decision_value_percent"].items():
        if name != "stakes":
            print(f"{name:36}" + "".join(f"{share:13.1f}%" for share in shares))
    print(f"\n{'learning curve, skill':36}{'terms':>8}{'rich':>8}{'tool and error':>16}")
    for row in found["learning_curve"]:
        print(f"{row['labelled']:<36,}{row['terms']:8.3f}{row['rich']:8.3f}{row['rate per tool and error']:16.3f}")
    print("\nlog loss of a tool never seen")
    for name, lost in found["unseen_tool"].items():
        print(f"{name:36}{lost:8.3f}")
    if "without" in found:
        print("\nskill lost without a factor")
        for name, lost in sorted(found["without"].items(), key=lambda item: -item[1]):
            print(f"{name:36}{lost:8.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=int, default=600_000, help="failures to learn from")
    parser.add_argument("--tested", type=int, default=80_000, help="failures to judge by")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="no boosted trees, no ablation")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    say("simulating ...")
    trial = Trial(shipped_spec(), World(asked.seed), asked.labelled, asked.tested)
    assert not math.isnan(trial.best)
    found = evaluate(trial, quick=asked.quick)
    if asked.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)


if __name__ == "__main__":
    main()
