"""
What advice about corrections is worth: after how many failures the next call with other arguments worked, by what was advised.

    python -m benchmarks.retries.corrections [DATA]

DATA is a folder of recorded calls (`../shared/data` where none is named; without it there is nothing to do). Each day is advised by
what the days before it came to, so that nothing is judged by itself; sources without times by what the other sources came to.
The agents of these records did not read the advice: the figures say whom it would have reached, not what it would have changed.
"""

import argparse
import sys

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, cast

from guardrails.core.retries.context import Context
from guardrails.core.retries.decision import CORRECTABLE, Decider, Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.shrinkage import Count, wilson
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import ErrorType
from guardrails.offline.learning.candidate import grafted
from guardrails.offline.learning.corrections import as_labels, corrections_of
from guardrails.offline.learning.rows.cells import UNDATED, Cell, decayed
from guardrails.policy.feature_file import shipped_spec
from guardrails.policy.model_files import cold_model

from .real import DATA, cells_of


LEAST_BEFORE: Final = 50
"""Corrections that the days before have to have brought; of fewer nothing is learned yet."""
BANDS: Final = (0.0, 0.3, 0.5, 0.7, 0.8, 1.0)


class Row(NamedTuple):
    """
    What was advised after failures, and what the next call with other arguments came to.
    """

    learned: str
    shipped: str
    share: float
    """How many were said to work."""
    calls: Count


def model_of(spec: FeatureSpec, cells: Sequence[Cell]) -> RetryModel:
    """
    The shipped model with what *cells* say of corrections.
    """
    return grafted(cold_model(), corrections_of(spec, cells), spec, cells).model


def advised(model: RetryModel, cell: Cell) -> str:
    """
    The next step that *model* advises after the failures of *cell*, at the usual costs.
    """
    context = Context(cell.context, None, None)
    return Decider(model, Stakes()).advise(cell.tool, cast(ErrorType, cell.error_type), context, left=3).next_action


def by_days(spec: FeatureSpec, cells: Iterable[Cell]) -> list[Row]:
    """
    Each day by the days before it.
    """
    dated = sorted(cell for cell in cells if cell.day != UNDATED)
    made: list[Row] = []
    for day in sorted({cell.day for cell in dated}):
        before = [cell for cell in dated if cell.day < day]
        if sum(cell.n for cell in before) >= LEAST_BEFORE:
            model = model_of(spec, decayed(before, day))
            made += rows(model, [cell for cell in dated if cell.day == day])
    return made


def by_sources(spec: FeatureSpec, sources: Mapping[str, Sequence[Cell]]) -> list[Row]:
    """
    Each source by the others, its times left out.
    """
    made: list[Row] = []
    for name, held in sources.items():
        others = [cell for other, cells in sources.items() if other != name for cell in cells]
        made += rows(model_of(spec, decayed(others, max(cell.day for cell in others))), held)
    return made


def rows(model: RetryModel, held: Iterable[Cell]) -> list[Row]:
    """
    One row for each of the *held* cells.
    """
    cold = cold_model()
    return [
        Row(
            advised(model, cell),
            advised(cold, cell),
            model.correction(cell.tool, cell.error_type, cell.context) or 0.0,
            Count(cell.n, cell.s),
        )
        for cell in held
    ]


def show(title: str, found: Sequence[Row]) -> None:
    """
    The table for a person.
    """
    print(f"{title}: {sum(row.calls.n for row in found):,.0f} failures that a call with other arguments followed")
    print(f"{'advised':18}{'shipped':>9}{'worked':>8}{'95 %':>10}{'learned':>11}{'worked':>8}{'95 %':>10}")
    totals: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: {"shipped": Counter(), "learned": Counter()})
    for row in found:
        for who, action in (("shipped", row.shipped), ("learned", row.learned)):
            totals[action][who].update({"n": row.calls.n, "s": row.calls.s})
    for action, each in sorted(totals.items()):
        told = "".join(
            _told(Count(each[who]["n"], each[who]["s"]), width) for who, width in (("shipped", 9), ("learned", 11))
        )
        print(f"{action:18}{told}")
    print(f"{'said to work':18}{'learned':>9}{'worked':>8}{'95 %':>10}")
    for low, high in pairwise(BANDS):
        there = [row.calls for row in found if low <= row.share < high]
        count = Count(sum(one.n for one in there), sum(one.s for one in there))
        print(f"{f'{100 * low:.0f} to {100 * high:.0f} %':18}{_told(count, 9)}")
    print()


def _told(count: Count, width: int) -> str:
    if not count.n:
        return f"{'-':>{width}}{'':8}{'':10}"
    low, high = wilson(count)
    return f"{count.n:{width},.0f}{100 * count.s / count.n:6.0f} %{f'{100 * low:.0f}-{100 * high:.0f} %':>10}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=DATA, metavar="DATA", help="folder of recorded calls")
    data: Path = parser.parse_args(arguments).data
    sources = cells_of(data) if data.is_dir() else {}
    if not sources:
        print("skipped: there are no recorded calls here; name a folder of them", file=sys.stderr)
        return 0
    spec = shipped_spec()
    labels = {
        name: [cell for cell in as_labels(cells) if cell.error_type in CORRECTABLE] for name, cells in sources.items()
    }
    labels = {name: cells for name, cells in labels.items() if cells}
    show("each day by the days before", by_days(spec, (cell for cells in labels.values() for cell in cells)))
    show("each source by the others", by_sources(spec, labels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
