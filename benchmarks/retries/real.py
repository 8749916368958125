"""
What real retries teach: those in recorded agent sessions, one source of records left out in turn.

    python -m benchmarks.retries.real [DATA]

DATA is a folder of recorded calls (`../shared/data` where none is named; without it there is nothing to do). Failures and
what became of them are found by the library's own readers and extraction, models are fitted by the library's own fit and
judged on the source that was left out. A derived file of errors beside them is no source.
"""

import argparse
import sys
import tempfile

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from guardrails.core.retries.context import Context
from guardrails.core.retries.labels import INVALID, NO_ACTION
from guardrails.core.retries.spec import FeatureSpec
from guardrails.offline.learning.extract import extract
from guardrails.offline.learning.fit import TERMS
from guardrails.offline.learning.rows.cells import Cell
from guardrails.policy.feature_file import shipped_spec

from .dataset import WITHOUT, Failure
from .metrics import Quality, quality
from .models import TRANSIENT, Maker, base_rate, by_botocore, by_error, by_tool, regression, static_flags


DATA: Final = Path(__file__).parents[3] / "shared" / "data"
DERIVED: Final = frozenset({"errors_and_retries.jsonl.gz"})
LINEUP: Final[Mapping[str, Maker]] = {
    "base rate": base_rate,
    "static transient flags": static_flags(by_botocore),
    "rate per error": by_error,
    "rate per tool and error": by_tool,
    "regression without `between`": regression(tuple(term for term in TERMS if "between" not in term)),
    "regression": regression(TERMS),
}


class Tally(NamedTuple):
    """
    Failures of one source: how many there were, how many the same call followed, and after how many of those it worked.
    """

    failures: float
    retried: float
    worked: float


def cells_of(data: Path) -> dict[str, list[Cell]]:
    """
    The cells of each file of recorded calls in *data*, by the file's name.
    """
    found = {}
    for path in sorted(data.glob("*.jsonl*")):
        if path.name not in DERIVED:
            with tempfile.TemporaryDirectory() as folder:
                cells = extract([path], Path(folder)).cells
            found[path.name.partition(".")[0]] = [cell for cell in cells if cell.error_type != INVALID]
    return found


def tally(cells: Sequence[Cell], *, transient: bool = False) -> Tally:
    """
    What *cells* add up to; with *transient*, those of the error types that may pass by themselves.
    """
    kept = [cell for cell in cells if not transient or cell.error_type in TRANSIENT]
    return Tally(
        sum(cell.n + cell.unlabelled for cell in kept),
        sum(cell.n for cell in kept),
        sum(cell.s for cell in kept),
    )


def retries_of(cells: Sequence[Cell]) -> Iterator[Failure]:
    """
    One row for each retried failure that *cells* count; what models ask for is in its codes.
    """
    for cell in cells:
        if cell.action != NO_ACTION:
            context = Context(cell.context, None, None)
            for at in range(round(cell.n)):
                yield Failure(
                    cell.tool,
                    cell.error_type,
                    context,
                    elapsed_ms=0,
                    delay_ms=0,
                    between=False,
                    action=cell.action,
                    worked=at < cell.s,
                    bound=WITHOUT,
                    after=(),
                )


def left_out(spec: FeatureSpec, sources: Mapping[str, Sequence[Cell]]) -> dict[str, Quality]:
    """
    Figures of each model over the retries of all sources, each judged by a model that never saw its source.
    """
    return {model: judged(spec, sources, maker) for model, maker in LINEUP.items()}


def judged(spec: FeatureSpec, sources: Mapping[str, Sequence[Cell]], maker: Maker) -> Quality:
    """
    The figures of one model.
    """
    rows = {name: list(retries_of(cells)) for name, cells in sources.items()}
    asked = [name for name in rows if rows[name]]
    worked = np.array([float(row.worked) for name in asked for row in rows[name]])
    said = [maker(spec, [row for name in asked if name != out for row in rows[name]])(rows[out]) for out in asked]
    return quality(np.concatenate(said), worked)


def show(sources: Mapping[str, Sequence[Cell]], figures: Mapping[str, Quality]) -> None:
    """
    The tables for a person.
    """
    every = [cell for cells in sources.values() for cell in cells]
    print(f"{'source':28}{'failures':>9}{'retried':>9}{'worked':>8}   {'transient':>9}{'retried':>9}{'worked':>8}")
    for name, cells in [*sources.items(), ("all", every)]:
        counts = "".join(f"{count:{width},.0f}" for count, width in zip(tally(cells), (9, 9, 8), strict=True))
        passing = "".join(
            f"{count:{width},.0f}" for count, width in zip(tally(cells, transient=True), (9, 9, 8), strict=True)
        )
        print(f"{name:28}{counts}   {passing}")
    print(
        f"\n{'each source by models of the others':36}{'log loss':>9}{'Brier':>8}{'ECE':>7}{'ROC-AUC':>9}{'PR-AUC':>8}"
    )
    for name, row in figures.items():
        print(f"{name:36}{row.log_loss:9.4f}{row.brier:8.4f}{row.ece:7.3f}{row.roc_auc:9.3f}{row.pr_auc:8.3f}")
    few = tally(every, transient=True)
    print(
        f"\nOnly {few.failures:,.0f} of {tally(every).failures:,.0f} failures are of a kind that may pass by itself, {few.retried:,.0f} of"
        f" them were followed by the same call, and {few.worked:,.0f} of those calls worked: what these records teach is"
        " when to repair\nsomething first, not when to wait. Waiting is judged by the simulator (benchmarks.retries.evaluate). A base\nrate of the others is high where a"
        " source's own is low, so that over all sources it ranks worse than chance."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=DATA, metavar="DATA", help="folder of recorded calls")
    data: Path = parser.parse_args(arguments).data
    sources = cells_of(data) if data.is_dir() else {}
    if not sources:
        print("skipped: there are no recorded calls here; name a folder of them", file=sys.stderr)
        return 0
    show(sources, left_out(shipped_spec(), sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
