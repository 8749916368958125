"""
Rows: the calls of files by session, in the order in which they settled. DuckDB reads and sorts this library's records, JSON
lines and Parquet; the readers of transcripts read the rest.
"""

import gzip
import tempfile
import zlib

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from xxhash import xxh3_64_intdigest

from guardrails.core.guards import base
from guardrails.core.guards.evidence import is_evidence
from guardrails.core.guards.loop_score import LoopScore, prospect_of
from guardrails.core.record import SCHEMA_VERSION
from guardrails.core.state import Entry, SessionState
from guardrails.core.values.errors import TrainingError, needs
from guardrails.core.values.types import INVALID, Outcome, ToolCall
from guardrails.offline.learning.facts import FOLDS, CallRow, Fact, Facts, day_of, facts_of
from guardrails.offline.replay.judge import Judge, sessions_of
from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.files import Input, calls_of, inputs
from guardrails.offline.transcripts.own_records import is_record
from guardrails.policy.policy import Policy
from guardrails.sinks.rotate import parsed


_KINDS: Final = {
    "STRING": "session_id run event code tool status error_type filename",
    "BIGINT": "n sig ts_ms duration_ms elapsed_ms retry_after_ms",
    "INT": "schema_version",
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
    "session_id IS NULL OR tool IS NULL AS nameless, event, schema_version, tool, sig, status, error_type, ts_ms, duration_ms, elapsed_ms, "
    "retry_after_ms, mutates, filename"
)
LATEST_MS: Final = 7_258_118_400_000
"""The year 2200: later times, and negative ones, are unknown."""
_SETTINGS: Final[Any] = {"memory_limit": "1200MB", "threads": "4", "preserve_insertion_order": "false"}
"""Of DuckDB; sorts that are larger than its memory go to disk."""
LONGEST_LINE: Final = 1 << 24
"""Bytes of a record's line."""
_JSON_LINES: Final[Any] = {
    "columns": {name: kind for name, kind in COLUMNS.items() if name != "filename"},
    "filename": True,
    "format": "newline_delimited",
    "ignore_errors": True,
    "maximum_object_size": LONGEST_LINE,
}
BATCH: Final = 50_000
HASH: Final = "CAST(hash(session_id, coalesce(run, '')) >> 1 AS BIGINT)"
_PARQUET: Final = b"PAR1"

Progress = Callable[[int], object]
"""Called with how many calls are read."""
Rows = Iterator[tuple[int, CallRow]]
"""The number of a session and a call of it."""
Raw = Sequence[Any]
"""The number of a session, that of the call in it, and the columns of `_ROW`."""


class Read(NamedTuple):
    """
    The facts of all files, and what was met on the way.
    """

    facts: Facts
    files: int
    """Files that gave calls."""
    notices: list[str]
    """Sentences for a person."""


def read(paths: Iterable[str | PathLike[str]], progress: Progress = lambda done: None, *, loops: bool = False) -> Read:
    """
    Returns the facts in *paths* (files and folders), of retries or of *loops*.

    Raises FileNotFoundError if a path is not there, OSError or ReaderError if a file cannot be read, TrainingError for broken
    records.
    """
    bad, report, files, made = Counter[tuple[str, str]](), Report(), inputs(paths), Facts()
    facts = loop_facts(_sessions(files, report)) if loops else facts_of(_rows(files, bad, report, progress))
    for fact, worked in facts:
        made.add(fact, 1, worked)
    notices = [f"`{file}`: {count:,} {what} are skipped" for (file, what), count in sorted(bad.items())]
    return Read(made, len(files) - len(report.without), [*notices, *report.notices])


def _rows(files: list[Input], bad: Counter[tuple[str, str]], report: Report, progress: Progress) -> Rows:
    kinds: dict[str, list[Input]] = {"transcript": [], "parquet": [], "records": []}
    for file in files:
        kinds[_kind(file)].append(file)
    transcripts, *own = kinds.values()
    parquet, records = ([str(path) for file in kind for path in file.parts.values()] for kind in own)
    if records or parquet:
        yield from rows_of(_sorted(records, parquet, progress), bad)
    for session, calls in _sessions(transcripts, report):
        yield from ((session, row) for row in _transcribed(call for call in calls if call.has_result))


def rows_of(raw: Iterable[Raw], bad: Counter[tuple[str, str]]) -> Rows:
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
        elif (session, n) != before:
            before = (session, n) if event is not None else None
            kind = INVALID if event == "call" else error or ("other" if status == "error" else None)
            known = ended is not None and 0 <= ended - (took or 0) <= ended <= LATEST_MS
            started, end = (ended - (took or 0), ended) if known else (None, None)
            yield session, CallRow(tool, sig, kind, started, end, elapsed, after, mutates is not False)


def _kind(file: Input) -> str:
    path, first = Path(file.path), b""
    # What cannot be read is told by the readers of transcripts; to open a pipe is to wait for who writes into it.
    with suppress(OSError, EOFError, zlib.error):
        if path.is_file():
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
                # A blank line says nothing.
                first = next(filter(bytes.strip, iter(partial(opened.readline, LONGEST_LINE), b"")), b"")
    if first.startswith(_PARQUET):
        return "parquet"
    return "records" if is_record(parsed(first)) else "transcript"


def _sorted(records: list[str], parquet: list[str], progress: Progress) -> Iterator[Raw]:
    """
    The lines of all files, those of a session together, in the order in which they settled.
    """
    with needs("train", "training"):
        import duckdb

    with tempfile.TemporaryDirectory(prefix="guardrails-") as spill:
        con = duckdb.connect(config={**_SETTINGS, "temp_directory": spill})
        try:
            views = {}
            if records:
                views["lines"] = con.read_json(records, **_JSON_LINES)
            if parquet:
                views["packed"] = con.read_parquet(parquet, union_by_name=True, hive_partitioning=False, filename=True)
            for name, view in views.items():
                view.create_view(name)
            tables = [selected(view.columns, name, HASH) for name, view in views.items()]
            rows, done = con.execute(f"{' UNION ALL '.join(tables)} ORDER BY ALL"), 0
            while batch := rows.fetchmany(BATCH):
                yield from batch
                done += len(batch)
                progress(done)
        except duckdb.Error as error:
            raise TrainingError(f"the records cannot be read: {error}") from error
        finally:
            con.close()


def selected(columns: Sequence[str], view: str, session: str) -> str:
    """
    Returns the text that selects the rows of a *view* that has *columns*, with the number of a *session*; DuckDB and Spark
    read it alike. A column that is not there is unknown of every row.
    """
    order = next((name for name in ("n", "seq", "ts_ms") if name in columns), "NULL")
    known = {name: name if name in columns else "NULL" for name in COLUMNS} | {"n": order}
    made = ", ".join(f"CAST({known[name]} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    return f"SELECT {session} AS session, n, {_ROW} FROM (SELECT {made} FROM {view}) AS {view}_read WHERE {_LINES}"  # noqa: S608


def _sessions(files: list[Input], report: Report) -> Iterator[tuple[int, list[RecordedCall]]]:
    """
    The sessions of transcripts. Those of different files are different sessions, even with equal ids.
    """
    for calls in sessions_of(calls_of(files, report)):
        named = f"{calls[0].source}\n{calls[0].session_id}\n{calls[0].run}"
        yield xxh3_64_intdigest(named.encode("utf-8", "replace")) >> 1, calls


def _transcribed(calls: Iterable[RecordedCall]) -> Iterator[CallRow]:
    """
    The rows of a session's *calls*, which have an outcome.
    """
    began: int | None = None
    for call in calls:
        started = call.ts_ms if call.ts_ms is not None and 0 <= call.ts_ms <= LATEST_MS else None
        began = started if began is None else began
        ended = None if started is None else started + (call.duration_ms or 0)
        # A clock that goes backwards makes no session younger than nothing.
        elapsed = None if ended is None or began is None else max(0, ended - began)
        tool, changes = call.tool.encode("utf-8", "replace").decode(), call.read_only is not True
        error = (call.error_type or "other") if call.is_error else None
        after = call.retry_after_ms if error else None
        yield CallRow(tool, call.signature, error, started, ended, elapsed, after, changes)


@base.guard
class Watch(LoopScore):
    """
    Looks at each call before it runs and when it is over, and says nothing: so what is learned from is what will be served.
    """

    seen: Any
    """By the id of a call: its prospect, and then whether it brought nothing new."""

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: base.Facts) -> None:
        self.seen[call.id] = prospect_of(call, state), None

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: base.Facts) -> None:
        if facts.entry is not None:
            self.seen[call.id] = self.seen[call.id][0], brings_nothing(facts.entry, state)


def loop_facts(sessions: Iterable[tuple[int, list[RecordedCall]]]) -> Iterator[tuple[Fact, bool]]:
    """
    Returns a fact for each call of *sessions*, each with its number, that is over, and whether it brought nothing new. The same
    answer again after work is left out: it may be wanted.
    """
    for session, calls in sessions:
        watch = Watch(seen={})
        Judge(Policy([watch], by_name=True)).judge(calls)
        for call, (at, nothing) in zip(calls, watch.seen.values(), strict=True):
            if nothing is not None and not (nothing and at.same.endswith("old")):
                yield Fact(day_of(call.ts_ms), session % FOLDS, at), nothing


def brings_nothing(entry: Entry, state: SessionState) -> bool:
    """
    Returns whether a call that is over failed as an earlier one of its tool, or brought what that brought. Of what may be work only the
    same call counts, and acknowledgements and waits never do.
    """
    alike = [one for one in state.window if one.tool == entry.tool and one.seq < entry.seq and is_evidence(one, entry)]
    return any(one.sig == entry.sig or not entry.changes or entry.status == "error" for one in alike)
