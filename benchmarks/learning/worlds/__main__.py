"""
What models of some worlds know of another one, and what faults that look like success do to them.

    python -m benchmarks.learning.worlds                 # 20,000 retries of each world
    python -m benchmarks.learning.worlds --quick         # 5,000 of each, no boosted trees; a CPU minute
    python -m benchmarks.learning.worlds --json

Each world is judged by the shipped model, by models of the other worlds alone, of the others with a little of its own, and of its own.
Then come the classes of faults: what the envelope calls each, and how much of what is learned they make wrong.
"""

import argparse
import json
import sys

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from .judge import MODELS, QUICK, Data, Figures, Sizes, left_out, mean
from .labels import Polluted, polluted
from .seen import DECLARATIONS, SAID, seen


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


def show_seen(found: Mapping[str, Mapping[str, Counter[str]]]) -> None:
    """
    By declaration and class, what the envelope calls the forms of a fault.
    """
    for declared, classes in found.items():
        print(f"{f'forms of faults, {declared}':50}" + "".join(f"{said:>24}" for said in SAID))
        for flaw, counts in classes.items():
            print(f"{flaw:50}" + "".join(f"{counts[said]:24}" for said in SAID))
        print()


def show_polluted(found: Mapping[str, Polluted]) -> None:
    """
    By world and labels, what is learned.
    """
    print(f"{'retries that were told to have worked':50}{'wrong, %':>12}{'too sure':>12}{'ECE':>12}{'value, %':>12}")
    for name, world in found.items():
        print(f"{name}: " + ", ".join(f"{flaw} {share:.1f} %" for flaw, share in world.flaws.items()))
        for how, one in world.labelled.items():
            print(f"  {how:48}{one.wrong:12.1f}{one.too_sure:+12.1f}{one.ece:12.3f}{one.value:12.1f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer retries, no boosted trees")
    parser.add_argument("--trees", action="store_true", help="boosted trees all the same")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    with threadpool_limits(limits=1):
        data = Data(QUICK if asked.quick else Sizes(), asked.seed)
        found = left_out(data, trees=asked.trees or not asked.quick)
        faults = {name: seen(declared) for name, declared in DECLARATIONS.items()}
        labels = polluted(data)
    if asked.json:
        told: dict[str, Any] = {
            "left_out": {name: {model: one._asdict() for model, one in made.items()} for name, made in found.items()},
            "faults": faults,
            "labels": {
                name: {"flaws": one.flaws, "labelled": {how: made._asdict() for how, made in one.labelled.items()}}
                for name, one in labels.items()
            },
        }
        print(json.dumps(told, indent=2))
    else:
        show(found)
        show_seen(faults)
        show_polluted(labels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
