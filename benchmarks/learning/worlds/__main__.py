"""
What models of some worlds know of another one.

    python -m benchmarks.learning.worlds                 # 20,000 retries of each world, about four CPU minutes
    python -m benchmarks.learning.worlds --quick         # 5,000 of each, under one
    python -m benchmarks.learning.worlds --json

Each world is judged by the shipped model, by models of the other worlds alone, of the others with a little of its own, and of its own.
"""

import argparse
import json
import sys

from collections.abc import Mapping, Sequence

from threadpoolctl import threadpool_limits

from .judge import MODELS, QUICK, Data, Figures, Sizes, left_out, mean


def show(found: Mapping[str, Mapping[str, Figures]]) -> None:
    """
    The tables for a person: one for each figure, a row for each model, a column for each world.
    """
    titles = {
        "skill": ("skill: 0 is the base rate, 1 the limit", "3f"),
        "value": ("value of decisions, % of the limit's", "1f"),
        "ece": ("calibration error", "3f"),
        "log_loss": ("log loss", "3f"),
    }
    for figure, (title, form) in titles.items():
        print(f"{title:40}" + "".join(f"{name:>10}" for name in [*found, "mean"]))
        for model in [one for one in MODELS if all(one in figures for figures in found.values())]:
            row = [*(figures[model] for figures in found.values()), mean(found, model)]
            print(f"{model:40}" + "".join(f"{getattr(one, figure):10.{form}}" for one in row))
        print()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer retries, no boosted trees")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    with threadpool_limits(limits=1):
        found = left_out(Data(QUICK if asked.quick else Sizes(), asked.seed), trees=not asked.quick)
    if asked.json:
        told = {name: {model: one._asdict() for model, one in figures.items()} for name, figures in found.items()}
        print(json.dumps({"left_out": told}, indent=2))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
