"""
Counts rows in batches of sessions into cells.
"""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Final, NamedTuple

from guardrails.core.retries.spec import FeatureSpec

from .cells import DAY_MS, UNDATED, apart_from
from .duck import Duck, only_good, rows_text
from .rows import ROW, calls_of
from .sql import extraction


BATCH_ROWS: Final = 3_400_000
"""Rows of a batch: it, and its sorts, stay in memory."""
MOST_SCANS: Final = 12
"""So many batches read the same files; for more, the rows are first written apart by session."""
EACH: Final = "TRUE"
"""The condition that all rows meet."""

Progress = Callable[[int, int, str], object]
"""Called with what is done, of how much, and of what."""


class Group(NamedTuple):
    """
    Files that hold whole sessions, and the text that makes rows of them.
    """

    files: tuple[str, ...]
    staged: bool
    """Rows already; else records."""


class Run(NamedTuple):
    """
    The sources to count, into files in *work*.
    """

    spec: FeatureSpec
    groups: Sequence[Group]
    work: Path
    latest_ms: int
    """Calls that end later, in the future, do not say what is new."""
    progress: Progress


class Counted(NamedTuple):
    """
    The files of cells, and the newest end of a call.
    """

    cells: list[Path]
    newest_ms: int


def count(duck: Duck, run: Run) -> Counted:
    """
    Returns the cells of *run*.
    """
    spec, groups, work, latest_ms, progress = run
    newest_ms = 0
    sizes = []
    for group in groups:
        _view_rows(duck, group)
        rows, newest = duck.one(
            f"SELECT count(*), max(CASE WHEN ended_ms <= {latest_ms} THEN ended_ms END) FROM fresh_rows"  # noqa: S608
        )
        sizes.append(rows)
        newest_ms = max(newest_ms, newest or 0)
    made = Counted([], newest_ms)
    total, done = sum(sizes), 0
    for index, (group, rows) in enumerate(zip(groups, sizes, strict=True)):
        batches = max(1, ceil(rows / BATCH_ROWS))
        for batch, (part, each) in enumerate(_batches(duck, group, work / f"apart-{index}", batches)):
            cells = work / f"cells-{index}-{batch}.parquet"
            _view_rows(duck, part)
            _count_batch(duck, spec, each, newest_ms, cells)
            made.cells.append(cells)
            done += rows // batches
            progress(min(done, total), total, "calls")
    return made


def _view_rows(duck: Duck, group: Group) -> None:
    columns = duck.view("input", group.files)
    text = "input" if group.staged else f"({rows_text(columns)}) AS made"
    duck.sql(f"CREATE OR REPLACE TEMP VIEW fresh_rows AS {only_good(text)}")


def _batches(duck: Duck, group: Group, apart: Path, batches: int) -> list[tuple[Group, str]]:
    """
    (files, condition on rows) of each batch of *group*.
    """
    if batches == 1:
        return [(group, EACH)]
    if batches <= MOST_SCANS:
        return [(group, f"hash(session) % {batches} = {batch}") for batch in range(batches)]
    _view_rows(duck, group)
    duck.write(f"SELECT *, 0 AS bad, hash(session) % {batches} AS bucket FROM fresh_rows", apart, "bucket")  # noqa: S608
    folders = sorted(apart.glob("bucket=*"), key=lambda folder: int(folder.name.partition("=")[2]))
    return [(Group(tuple(str(file) for file in sorted(folder.glob("*.parquet"))), True), EACH) for folder in folders]


def _count_batch(duck: Duck, spec: FeatureSpec, only: str, newest_ms: int, cells: Path) -> None:
    columns = ", ".join(ROW)
    newest_day = newest_ms // DAY_MS if newest_ms else UNDATED
    if only == EACH:
        # Files that are all read are read again with less than keeping them takes.
        duck.sql(f"CREATE OR REPLACE TEMP VIEW rows AS SELECT {columns} FROM fresh_rows")  # noqa: S608
    else:
        duck.sql(f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT {columns} FROM fresh_rows WHERE {only}")  # noqa: S608
        duck.sql("CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM fresh")
    duck.sql(f"CREATE OR REPLACE TEMP VIEW calls AS {calls_of(spec, apart_from(newest_day))}")
    duck.write(extraction(spec), cells)
