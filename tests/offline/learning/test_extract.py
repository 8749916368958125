"""
A11: records of any kind become cells; nothing is counted twice, whatever files, clocks and processes do.
"""

import gzip
import json
import random

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from guardrails import Policy, Retryable
from guardrails.core.retries.labels import INVALID, CallRow, labelled
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.extract import extract
from guardrails.offline.learning.rows import counting
from guardrails.offline.learning.rows.cells import COUNTS, UNDATED, Cell, merged
from guardrails.policy.models import shipped_spec
from tests.offline.learning.made_rows import session
from tests.tables import table


SPEC = shipped_spec()
DAY = 20_000
START = DAY * 86_400_000
Line = dict[str, Any]


def line(name: str, n: int, row: CallRow, run: str = "r") -> Line:
    """
    The record of a row as the library writes it, as far as it is read.
    """
    head = {"schema_version": 1, "session_id": name, "run": run, "n": n, "tool": row.tool, "sig": row.sig}
    if row.error_type == INVALID:
        said = {"event": "call", "ts_ms": row.ended_ms, "decision": "deny", "code": "validation.arguments"}
        return {**head, **said, "arguments": {"x": [1, 2]}}
    return {
        **head,
        "event": "settle",
        "ts_ms": row.ended_ms,
        "duration_ms": None if row.started_ms is None or row.ended_ms is None else row.ended_ms - row.started_ms,
        "elapsed_ms": row.elapsed_ms,
        "status": "error" if row.error_type else "ok",
        "error_type": row.error_type,
        "retry_after_ms": row.retry_after_ms,
        "mutates": row.changes,
        "retry_source": row.source,
        "late": False,
        "result": {"text": "found"},
    }


def failing(name: str = "s", tool: str = "t", at: int = START, run: str = "r") -> list[Line]:
    """
    A failure, and its retry a second later, which works.
    """
    rows = [CallRow(tool, 1, "timeout", at, at, 0), CallRow(tool, 1, None, at + 1_000, at + 1_000, 1_000)]
    return [line(name, n, row, run) for n, row in enumerate(rows, 1)]


def many(seed: int = 1, sessions: int = 40) -> list[Line]:
    """
    Records of sessions that take place at the same time, in the order of time.
    """
    rng = random.Random(seed)
    made = []
    for number in range(sessions):
        rows = [row for row in session(rng, rng.randrange(1, 50)) if row.ended_ms is not None]
        made += [line(f"s-{number}", n, row, f"r-{seed}") for n, row in enumerate(rows, 1)]
    return sorted(made, key=lambda record: record["ts_ms"])


def write(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return path


def undivided(cells: Iterable[Cell]) -> list[Cell]:
    return merged(cell._replace(fold=UNDATED) for cell in cells)


def totals(cells: Iterable[Cell]) -> dict[str, float]:
    cells = list(cells)
    return {count: sum(getattr(cell, count) for cell in cells) for count in COUNTS}


def expected(lines: Iterable[Line]) -> list[Cell]:
    """
    The cells of records, by the online computer.
    """
    rows: dict[Any, list[tuple[int, CallRow]]] = {}
    for record in lines:
        ended, took = record["ts_ms"], record.get("duration_ms") or 0
        refused = record["event"] == "call"
        row = CallRow(
            record["tool"],
            record["sig"],
            INVALID if refused else record["error_type"],
            ended - took,
            ended,
            record.get("elapsed_ms"),
            record.get("retry_after_ms"),
            record.get("mutates", True),
            record.get("retry_source"),
        )
        rows.setdefault((record["session_id"], record["run"]), []).append((record["n"], row))
    return merged(_cells(rows.values()))


def _cells(sessions: Iterable[list[tuple[int, CallRow]]]) -> Iterator[Cell]:
    for told in sessions:
        calls = [row for _, row in sorted(told, key=lambda each: each[0])]
        for at, tool, error, context, action, source, n, s, fixes, fixed in labelled(SPEC, calls):
            day = (calls[at].ended_ms or 0) // 86_400_000
            yield Cell(day, UNDATED, tool, error, context, action, source, n, s, 1 - n, fixes, fixed, 0, 0)


def test_records_become_the_cells_that_the_online_computer_tells(tmp_path: Path) -> None:
    lines = many()
    made = extract([write(tmp_path / "calls.jsonl", lines)])
    assert undivided(made.cells) == expected(lines)
    assert made.files == 1
    assert not made.notices


@pytest.mark.system
def test_batches_files_and_formats_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = many()
    monkeypatch.setattr(counting, "BATCH_ROWS", 300)
    whole = extract([write(tmp_path / "calls.jsonl", lines)]).cells
    monkeypatch.setattr(counting, "MOST_SCANS", 2)
    apart = extract([tmp_path / "calls.jsonl"]).cells
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "calls.jsonl.gz").write_bytes(gzip.compress((tmp_path / "calls.jsonl").read_bytes()))
    unpacked = extract([packed]).cells
    columns: tuple[str, ...] = (
        "event",
        "session_id",
        "run",
        "n",
        "tool",
        "sig",
        "ts_ms",
        "duration_ms",
        "elapsed_ms",
        "error_type",
    )
    columns += ("retry_after_ms", "mutates", "retry_source", "decision", "code")
    for half in range(2):
        part = tmp_path / "parquet" / f"bucket={half}"
        part.mkdir(parents=True)
        mine = [record for record in lines if int(record["session_id"][2:]) % 2 == half]
        table = pa.Table.from_pylist([{name: record.get(name) for name in columns} for record in mine])
        pq.write_table(table, part / "part.parquet")
    parquet = extract([tmp_path / "parquet"], whole_by="bucket").cells
    assert undivided(whole) == undivided(apart) == undivided(unpacked) == undivided(parquet) == expected(lines)


def test_a_last_line_without_its_end_waits_for_the_next_run(tmp_path: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    text = path.read_text()
    path.write_text(text[:-30])
    assert totals(extract([path]).cells) | {"n": 0, "unlabelled": 1} == totals(extract([path]).cells)
    path.write_text(text)
    assert totals(extract([path]).cells) | {"n": 1, "s": 1, "unlabelled": 0} == totals(extract([path]).cells)


def test_records_that_are_packed_too_count_once(tmp_path: Path) -> None:
    made = many()
    plain = write(tmp_path / "calls.jsonl", made)
    packed = tmp_path / "calls.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = extract([tmp_path])
    assert found.notices == [f"`{packed}`: left out: a copy of `{plain}`"]
    assert undivided(found.cells) == expected(made)


def test_lines_that_cannot_be_used_are_told_and_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    other = {**failing("other")[0], "schema_version": 2}
    path.write_text(path.read_text() + '{"broken\n[1]\n' + json.dumps(other) + "\n" + '{"session_id": 7, "n": "x"}\n')
    made = extract([path])
    assert totals(made.cells)["n"] == 1
    assert [notice.partition(": ")[2] for notice in made.notices] == [
        "3 lines that are no records are skipped",
        "1 lines of a schema version that is not known are skipped",
    ]


def test_lives_of_one_name_are_different_sessions(tmp_path: Path) -> None:
    one, two = failing(run="a")[0], failing(run="b")[1]
    made = extract([write(tmp_path / "1.jsonl", [one]), write(tmp_path / "2.jsonl", [two])])
    assert totals(made.cells)["unlabelled"] == 1
    first, second = failing("t", run="a")
    write(tmp_path / "1.jsonl", [one, first])
    made = extract([tmp_path / "1.jsonl", write(tmp_path / "3.jsonl", [second])])
    assert totals(made.cells)["n"] == 1


def test_late_outcomes_and_other_refusals_do_not_count(tmp_path: Path) -> None:
    failure, retry = failing()
    refusal = {**failing("x")[0], "event": "call", "decision": "deny", "code": "budget.max_calls"}
    path = write(
        tmp_path / "calls.jsonl", [failure, {**retry, "late": True}, refusal, {**retry, "n": 3, "ts_ms": START + 9}]
    )
    assert totals(extract([path]).cells)["n"] == 1


def test_a_clock_that_goes_back_labels_nothing(tmp_path: Path) -> None:
    failure, retry = failing()
    path = write(tmp_path / "calls.jsonl", [failure, {**retry, "ts_ms": START - 5_000}])
    assert totals(extract([path]).cells)["unlabelled"] == 1


@table("times", [None, -5, 10**17])
def test_records_without_times_have_no_day(tmp_path: Path, times: int | None) -> None:
    path = write(tmp_path / "calls.jsonl", [{**record, "ts_ms": times, "elapsed_ms": None} for record in failing()])
    (cell,) = extract([path]).cells
    assert (cell.day, cell.n) == (UNDATED, 1)
    assert SPEC.decode_action(cell.action)["delay"] == 0


def test_an_empty_log_and_a_day_without_labels_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    made = extract([tmp_path / "empty.jsonl"])
    assert (made.cells, made.newest_day, made.files) == ([], UNDATED, 0)
    made = extract([write(tmp_path / "a.jsonl", failing()[:1])])
    assert totals(made.cells) | {"n": 0, "unlabelled": 1} == totals(made.cells)
    with pytest.raises(TrainingError, match="no file or folder"):
        extract([tmp_path / "missing"])


def test_transcripts_count_too(tmp_path: Path) -> None:
    call = {"session_id": "s", "tool": "t", "arguments": {"q": 1}, "is_error": True, "error_type": "timeout", "ts": 1e9}
    worked = {**call, "is_error": False, "error_type": None, "ts": 1e9 + 3}
    path = write(tmp_path / "calls.jsonl", [call, worked, {**call, "session_id": "u"}])
    made = extract([path])
    assert totals(made.cells) | {"n": 1, "s": 1, "unlabelled": 1} == totals(made.cells)


def test_the_newest_three_days_are_kept_apart_by_sessions(tmp_path: Path) -> None:
    lines = [
        record for day in range(4) for k in range(30) for record in failing(f"{day}-{k}", at=START + day * 86_400_000)
    ]
    cells = extract([write(tmp_path / "a.jsonl", lines)]).cells
    apart = {day: {cell.fold for cell in cells if cell.day == day} for day in range(DAY, DAY + 4)}
    assert apart[DAY] == {UNDATED}
    assert all(len(apart[DAY + day]) > 5 for day in (1, 2, 3))
    assert not any(UNDATED in apart[DAY + day] for day in (1, 2, 3))


def test_parquet_that_holds_no_records_says_so(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    with pytest.raises(TrainingError, match="records have a column `session_id`; these have x"):
        extract([tmp_path / "a.parquet"])
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(TrainingError, match="cannot be counted"):
        extract([tmp_path / "b.parquet"])


@table("data", [b"PAR1", b"PAR1 not really"])
def test_parquet_that_is_cut_off_is_left_out_also_if_it_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(data)
    found = extract([path])
    assert found.files == 0
    assert found.notices == [f"`{path}`: skipped: a Parquet file that is cut off"]


def test_what_the_library_logs_is_what_training_finds(tmp_path: Path, clock: Any) -> None:
    """A9, A10: no context that serving computed differs from the one of the log."""
    rng = random.Random(3)
    log = tmp_path / "calls.jsonl"
    policy = Policy([Retryable(model=str(tmp_path / "retry.json"))])
    failures = 0

    def execute(tool: str, arguments: dict[str, Any]) -> str:
        clock.advance(rng.choice((0.1, 2, 40)))
        if rng.random() < 0.6:
            raise rng.choice((TimeoutError, ConnectionError, ValueError))("no")
        return "found"

    for number in range(20):
        with policy.session(f"s-{number}", clock=clock, records=log) as made:
            for _ in range(40):
                tool, argument = rng.choice(("search", "book")), rng.randrange(4)
                envelope = made.call(tool, {"n": argument}, execute)
                failures += envelope.error_type is not None
                clock.advance(rng.choice((0.0, 1, 10, 300)))
    found = totals(extract([log]).cells)
    assert found["n"] + found["unlabelled"] == failures
    assert found["logged"] == failures
    assert found["skewed"] == 0
