"""
Rows: the calls of files by session, in the order in which they settled. DuckDB reads and sorts this library's records, JSON
lines and Parquet; the readers of transcripts read the rest.
"""

import os
import tempfile

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from guardrails.core.record import SCHEMA_VERSION
from guardrails.core.values.errors import NothingFoundError, TrainingError, needs
from guardrails.core.values.types import INVALID
from guardrails.offline.replay.judge import sessions_of
from guardrails.offline.transcripts import Report, open_lines
from guardrails.offline.transcripts.inputs import Input, calls_of, inputs
from guardrails.offline.transcripts.own_records import is_record
from guardrails.sinks.rotate import parsed

from .facts import CallRow, Facts, facts_of


_KINDS: Final = {
    "VARCHAR": "session_id run event code tool status error_type filename",
    "BIGINT": "n sig ts_ms duration_ms elapsed_ms retry_after_ms",
    "INTEGER": "schema_version",
    "BOOLEAN": "late mutates",
}
COLUMNS: Final = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""
Columns of records that are read. `ts_ms` is when a call ended, `n` the order in which calls settled.

Records may be the library's lines (`event`: `settle` lines and refusals for wrong arguments count), or one row for each call
that ran, without `event`. Of the latter `session_id`, `tool` and one of `n`, `seq`, `ts_ms` must be there.
"""
REFUSED: Final = "validation.arguments"
_LINES: Final = f"event IS NULL OR schema_version <> {SCHEMA_VERSION} OR (event = 'settle' AND NOT coalesce(late, FALSE)) OR (event = 'call' AND code = '{REFUSED}')"
"""The lines that are looked at; a line that is no record has no event, and of another version nothing is known."""
_ROW: Final = (
    "session_id IS NULL AS nameless, event, schema_version, tool, sig, status, error_type, ts_ms, duration_ms, elapsed_ms, "
    "retry_after_ms, mutates, filename"
)
LATEST_MS: Final = 7_258_118_400_000
"""The year 2200: later times, and negative ones, are unknown."""
MEMORY_MB: Final = 700
"""What DuckDB may use; sorts that are larger go to disk."""
THREADS: Final = 4
LONGEST_LINE: Final = 1 << 24
"""Bytes of a record's line."""
_JSON_LINES: Final[Any] = {"format": "newline_delimited", "ignore_errors": True, "maximum_object_size": LONGEST_LINE}
BATCH: Final = 50_000
HASH: Final = "CAST(hash(session_id, coalesce(run, '')) >> 1 AS BIGINT)"
_PARQUET: Final = b"PAR1"

Progress = Callable[[int, str], object]
"""Called with how many are done, and of what."""
Raw = Sequence[Any]
"""The number of a session, that of the call in it, and the columns of `_ROW`."""


@dataclass(slots=True)
class Read:
    """
    The facts of all files, and what was met on the way.
    """

    facts: Facts = field(default_factory=Facts)
    files: int = 0
    """Files that gave calls."""
    notices: list[str] = field(default_factory=list)
    """Sentences for a person."""


def read(paths: Iterable[str | os.PathLike[str]], progress: Progress = lambda done, what: None) -> Read:
    """
    Returns the facts in *paths* (files and folders).

    Raises TrainingError if a path is not there or cannot be read, OSError for a file.
    """
    made = Read()
    try:
        found = inputs(paths)
    except FileNotFoundError as error:
        raise TrainingError(str(error)) from None
    kinds: dict[str, list[Input]] = {"records": [], "parquet": [], "transcript": []}
    for file in found:
        kinds[_kind(file)].append(file)
    records, parquet = ([str(path) for file in kinds[kind] for path in file.paths] for kind in ("records", "parquet"))
    bad, report = Counter[tuple[str, str]](), Report()
    parts = []
    if records or parquet:
        parts.append(rows_of(_sorted(records, parquet, progress), bad))
    if kinds["transcript"]:
        parts.append(_transcripts(kinds["transcript"], report))
    for fact, worked in facts_of(chain.from_iterable(parts)):
        made.facts.add(fact, 1, worked)
    made.files = len(found) - len(report.without)
    made.notices = [f"`{file}`: {count:,} {what} are skipped" for (file, what), count in sorted(bad.items())]
    made.notices += report.notices
    return made


def rows_of(raw: Iterable[Raw], bad: Counter[tuple[str, str]]) -> Iterator[tuple[int, CallRow]]:
    """
    Returns the calls of *raw* lines, which come sorted; lines that cannot be used are counted in *bad*.

    A copy of a record, which has the number of the one before, counts once.
    """
    before: Any = None
    for session, n, nameless, event, version, tool, *rest in raw:
        sig, status, error, ended, took, elapsed, after, mutates, file = rest
        if nameless or (n is None and event is not None):
            bad[file, "lines that are no records"] += 1
        elif version not in (None, SCHEMA_VERSION):
            bad[file, "lines of a schema version that is not known"] += 1
        elif tool is not None and (session, n) != before:
            before = (session, n) if event is not None else None
            kind = INVALID if event == "call" else error or ("other" if status == "error" else None)
            known = ended is not None and 0 <= ended - (took or 0) <= ended <= LATEST_MS
            started, end = (ended - (took or 0), ended) if known else (None, None)
            yield session, CallRow(tool, sig, kind, started, end, elapsed, after, mutates is not False)


def _kind(file: Input) -> str:
    path = Path(file.path)
    try:
        # To open a pipe is to wait for who writes into it.
        with path.open("rb") if path.is_file() else BytesIO() as opened:
            first = opened.readline(LONGEST_LINE)
    except OSError:
        return "transcript"
    if first.startswith(_PARQUET):
        return "parquet"
    if path.suffix == ".gz":
        first = next(iter(open_lines(path)), b"")
    return "records" if is_record(parsed(first)) else "transcript"


def _sorted(records: list[str], parquet: list[str], progress: Progress) -> Iterator[Raw]:
    """
    The lines of all files, those of a session together, in the order in which they settled.
    """
    with needs("train", "training"):
        import duckdb

    with tempfile.TemporaryDirectory(prefix="guardrails-") as spill:
        config: Any = {"memory_limit": f"{MEMORY_MB}MB", "threads": str(min(THREADS, os.cpu_count() or 1))}
        config |= {"preserve_insertion_order": "false", "temp_directory": spill}
        with duckdb.connect(config=config) as con:
            try:
                tables = []
                if records:
                    columns = {name: kind for name, kind in COLUMNS.items() if name != "filename"}
                    lines = con.read_json(records, columns=columns, filename=True, **_JSON_LINES)
                    lines.create_view("lines")
                    tables.append(selected(list(COLUMNS), "lines", HASH))
                if parquet:
                    packed = con.read_parquet(parquet, union_by_name=True, hive_partitioning=False, filename=True)
                    packed.create_view("packed")
                    tables.append(selected(packed.columns, "packed", HASH))
                found, done = con.execute(f"{' UNION ALL '.join(tables)} ORDER BY ALL"), 0
                while batch := found.fetchmany(BATCH):
                    yield from batch
                    done += len(batch)
                    progress(done, "calls")
            except duckdb.Error as error:
                raise TrainingError(f"the records cannot be read: {error}") from error


def selected(columns: Sequence[str], view: str, session: str) -> str:
    """
    Returns the text that selects the rows of a *view* that has *columns*, with the number of a *session*; DuckDB and Spark
    read it alike.

    Raises NothingFoundError if a required column is missing.
    """
    for name in ("session_id", "tool"):
        if name not in columns:
            raise NothingFoundError(
                f"records have a column `{name}`; these have {', '.join(sorted({*columns} - {'filename'})):.300}"
            )
    order = next((name for name in ("n", "seq", "ts_ms") if name in columns), "NULL")
    known = {name: name if name in columns else "NULL" for name in COLUMNS} | {"n": order}
    made = ", ".join(f"CAST({known[name]} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    return f"SELECT {session} AS session, n, {_ROW} FROM (SELECT {made} FROM {view}) AS {view}_read WHERE {_LINES}"  # noqa: S608


def _transcripts(files: list[Input], report: Report) -> Iterator[tuple[int, CallRow]]:
    """
    The calls of transcripts that have an outcome. Sessions of different files are different sessions, even with equal ids.
    """
    for calls in sessions_of(call for call in calls_of(files, report) if call.has_result):
        first = calls[0]
        session = xxh3_64_intdigest(f"{first.source}\n{first.session_id}\n{first.run}".encode("utf-8", "replace")) >> 1
        times = [one.ts_ms if one.ts_ms is not None and 0 <= one.ts_ms <= LATEST_MS else None for one in calls]
        began = next((ms for ms in times if ms is not None), 0)
        for call, started in zip(calls, times, strict=True):
            ended = None if started is None else started + (call.duration_ms or 0)
            error = (call.error_type or "other") if call.is_error else None
            # A clock that goes backwards makes no session younger than nothing.
            elapsed = None if ended is None else max(0, ended - began)
            tool = call.tool.encode("utf-8", "replace").decode()
            after = call.retry_after_ms if error else None
            yield (
                session,
                CallRow(tool, call.signature, error, started, ended, elapsed, after, call.read_only is not True),
            )
