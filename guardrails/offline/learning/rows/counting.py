"""
One run of the extraction: rows in batches of sessions, their cells, and the calls that the next run needs.
"""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Final, NamedTuple

from guardrails.core.retries.spec import FeatureSpec

from .cells import DAY_MS, UNDATED, apart_from
from .duck import Duck, merged_text, negative_text, only_good, rows_text
from .rows import ROW, calls_of
from .sql import extraction


BATCH_ROWS: Final = 3_400_000
"""Rows of a batch: it, and its sorts, stay in memory."""
MOST_SCANS: Final = 12
"""So many batches read the same files; for more, the rows are first written apart by session."""
CARRY_MS: Final = 7_200_000
"""Two hours: a session that was idle for longer than that before the newest call begins anew, should it go on."""
CARRY_CALLS: Final = 60
"""Latest calls that are kept of each session that may go on: those that features and labels look back over, and more."""
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
    carry: Path | None
    """The calls that the run before has kept."""
    newest_ms: int
    """The newest end of a call that was counted before."""
    latest_ms: int
    """Calls that end later, in the future, do not say what is new."""
    progress: Progress


class Counted(NamedTuple):
    """
    The output of a run: cells, and the calls to carry on.
    """

    cells: list[Path]
    carry: list[Path]
    newest_ms: int


def count(duck: Duck, run: Run) -> Counted:
    """
    Count *run*. The work of a run that was killed is taken over.
    """
    spec, groups, work, carry, newest_ms, latest_ms, progress = run
    sizes = []
    for group in groups:
        _view_rows(duck, group)
        rows, newest = duck.one(
            f"SELECT count(*), max(CASE WHEN ended_ms <= {latest_ms} THEN ended_ms END) FROM fresh_rows"  # noqa: S608
        )
        sizes.append(rows)
        newest_ms = max(newest_ms, newest or 0)
    made = Counted([], [], newest_ms)
    total, done = sum(sizes), 0
    for index, (group, rows) in enumerate(zip(groups, sizes, strict=True)):
        batches = max(1, ceil(rows / BATCH_ROWS))
        for batch, (part, each) in enumerate(_batches(duck, group, work / f"apart-{index}", batches)):
            names = [work / f"{what}-{index}-{batch}.parquet" for what in ("cells", "carry")]
            if not names[0].exists():
                _view_rows(duck, part)
                _count_batch(duck, spec, each, carry, newest_ms, names)
            made.cells.append(names[0])
            made.carry.append(names[1])
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
    if not apart.exists():
        _view_rows(duck, group)
        duck.write(f"SELECT *, 0 AS bad, hash(session) % {batches} AS bucket FROM fresh_rows", apart, "bucket")  # noqa: S608
    folders = sorted(apart.glob("bucket=*"), key=lambda folder: int(folder.name.partition("=")[2]))
    return [(Group(tuple(str(file) for file in sorted(folder.glob("*.parquet"))), True), EACH) for folder in folders]


def _count_batch(
    duck: Duck, spec: FeatureSpec, only: str, carry: Path | None, newest_ms: int, names: Sequence[Path]
) -> None:
    columns = ", ".join(ROW)
    newest_day = newest_ms // DAY_MS if newest_ms else UNDATED
    calls, query = calls_of(spec, apart_from(newest_day)), extraction(spec)
    if carry is None and only == EACH:
        # Files that are all read are read again with less than keeping them takes.
        both = f"SELECT {columns} FROM fresh_rows"  # noqa: S608
    else:
        duck.sql(f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT {columns} FROM fresh_rows WHERE {only}")  # noqa: S608
        both = "SELECT * FROM fresh"
    if carry is not None:
        duck.view("carried", [carry])
        duck.sql(
            f"CREATE OR REPLACE TEMP TABLE old AS SELECT {columns} FROM carried"  # noqa: S608
            " WHERE session IN (SELECT session FROM fresh)"
        )
        both += " UNION ALL SELECT * FROM old"
    duck.sql(f"CREATE OR REPLACE TEMP VIEW rows AS {both}")
    duck.sql(f"CREATE OR REPLACE TEMP VIEW calls AS {calls}")
    duck.write(carry_text(newest_ms), names[1])
    if carry is None:
        duck.write(query, names[0])
        return
    duck.sql(f"CREATE OR REPLACE TEMP TABLE after AS {query}")
    # What was carried was counted before, as far as was known then: that is taken away, and it is counted with the rest.
    duck.sql("CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM old")
    duck.sql(f"CREATE OR REPLACE TEMP VIEW calls AS {calls}")
    duck.sql(f"CREATE OR REPLACE TEMP TABLE before AS {query}")
    summands = f"(SELECT * FROM after UNION ALL {negative_text('before')}) AS summands"  # noqa: S608
    duck.write(merged_text(summands), names[0])


def carry_text(newest_ms: int) -> str:
    """
    Returns the latest calls, in the view `rows`, of the sessions that may go on.
    """
    columns = ", ".join(ROW)
    return f"""SELECT {columns} FROM (
  SELECT *, row_number() OVER (PARTITION BY session ORDER BY n DESC) AS back
  FROM rows
  WHERE session IN (SELECT session FROM rows WHERE ended_ms >= {newest_ms - CARRY_MS})
) AS numbered
WHERE back <= {CARRY_CALLS}"""  # noqa: S608
