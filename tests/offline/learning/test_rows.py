"""
A11: records of any kind become facts; nothing is counted twice, whatever files, clocks and processes do.
"""

import gzip
import json
import random

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from guardrails.core.retries.trail import UNKNOWN, Situation
from guardrails.core.values.errors import TrainingError
from guardrails.core.values.types import INVALID
from guardrails.offline.learning.facts import UNDATED, CallRow, Correction, Facts, facts_of
from guardrails.offline.learning.rows import read
from tests.tables import table


DAY = 20_000
START = DAY * 86_400_000
Line = dict[str, Any]


def line(name: str, n: int, row: CallRow, run: str = "r") -> Line:
    """
    The record of a row as the library writes it, as far as it is read.
    """
    head = {"schema_version": 1, "session_id": name, "run": run, "n": n, "tool": row.tool, "sig": row.sig}
    if row.error_type == INVALID:
        told = {"event": "call", "ts_ms": row.ended_ms, "decision": "deny", "code": "validation.arguments"}
        return {**head, **told, "arguments": {"x": [1, 2]}}
    return {
        **head,
        "event": "settle",
        "ts_ms": row.ended_ms,
        "duration_ms": (row.ended_ms or 0) - (row.started_ms or 0),
        "elapsed_ms": row.elapsed_ms,
        "status": "error" if row.error_type else "ok",
        "error_type": row.error_type,
        "retry_after_ms": row.retry_after_ms,
        "mutates": row.changes,
        "late": False,
        "result": {"text": "found"},
    }


def failing(name: str = "s", tool: str = "t", at: int = START, run: str = "r") -> list[Line]:
    """
    A failure, and its retry a second later, which works.
    """
    rows = [CallRow(tool, 1, "timeout", at, at, 0), CallRow(tool, 1, None, at + 1_000, at + 1_000, 1_000)]
    return [line(name, n, row, run) for n, row in enumerate(rows, 1)]


def sessions(seed: int = 1, count: int = 40) -> dict[str, list[CallRow]]:
    """
    Sessions made up at random: runs, repeats, refusals, calls that overlap.
    """
    rng = random.Random(seed)
    made: dict[str, list[CallRow]] = {}
    for number in range(count):
        clock = began = START + rng.randrange(10**9)
        rows = made[f"s-{number}"] = []
        for _ in range(rng.randrange(1, 50)):
            tool = rng.choice(("search", "book", 'a "quoted"\nname; --'))
            chance = rng.random()
            error = None if chance < 0.4 else INVALID if chance < 0.45 else rng.choice(("timeout", "not_found"))
            clock += rng.choice((0, 10, 900, 3_000, 9_000, 70_000, 400_000))
            sig = None if rng.random() < 0.03 else hash((tool, rng.randrange(4))) % 2**62
            after = rng.choice((None, None, 500, 40_000)) if error and error != INVALID else None
            started = clock if error == INVALID else clock - rng.choice((0, 5_000))
            age = None if error == INVALID else clock - began
            rows.append(CallRow(tool, sig, error, started, clock, age, after, error == INVALID or rng.random() < 0.5))
    return made


def many() -> list[Line]:
    """
    Their records, in the order of time.
    """
    lines = [line(name, n, row) for name, rows in sessions().items() for n, row in enumerate(rows, 1)]
    return sorted(lines, key=lambda record: record["ts_ms"])


def write(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return path


def told(facts: Facts) -> dict[Any, tuple[float, float]]:
    """
    The counts without the groups of sessions, which each engine makes in its own way.
    """
    made: dict[Any, tuple[float, float]] = {}
    for fact, (n, s) in facts.items():
        known = made.get((fact.day, fact.what), (0, 0))
        made[fact.day, fact.what] = known[0] + n, known[1] + s
    return made


def test_a_blank_line_before_the_first_record_changes_no_group_of_sessions(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", many())
    before = read([path]).facts
    path.write_text(f"\n{path.read_text()}")
    assert read([path]).facts == before


def expected() -> dict[Any, tuple[float, float]]:
    facts = Facts()
    for at, rows in enumerate(sessions().values()):
        for fact, worked in facts_of((at, row) for row in rows):
            facts.add(fact, 1, worked)
    return told(facts)


def totals(facts: Facts) -> tuple[float, float, float]:
    """
    Failures, retries and retries that worked.
    """
    retries = facts.of(Situation).values()
    return facts.failures, sum(n for n, _ in retries), sum(s for _, s in retries)


def test_records_become_the_facts_of_their_sessions(tmp_path: Path) -> None:
    made = read([write(tmp_path / "calls.jsonl", many())])
    assert told(made.facts) == expected()
    assert made.files == 1
    assert not made.notices
    assert made.facts.of(Correction)


@pytest.mark.system
def test_files_and_formats_make_no_difference(tmp_path: Path) -> None:
    lines = many()
    half = len(lines) // 2
    apart, packed, parquet = (tmp_path / name for name in ("apart", "packed", "parquet"))
    for folder in (apart, packed, parquet):
        folder.mkdir()
    write(apart / "1.jsonl", lines[half:])
    write(apart / "2.jsonl", lines[:half])
    (packed / "calls.jsonl.gz").write_bytes(gzip.compress(write(tmp_path / "calls.jsonl", lines).read_bytes()))
    names: tuple[str, ...] = (
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
    names += ("retry_after_ms", "mutates", "code")
    pq.write_table(
        pa.Table.from_pylist([{name: record.get(name) for name in names} for record in lines]), parquet / "a"
    )
    assert [told(read([folder]).facts) == expected() for folder in (apart, packed, parquet)] == [True] * 3
    # A copy of records counts once.
    assert told(read([tmp_path]).facts) == expected()


def test_lines_that_cannot_be_used_are_told_and_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    other = {**failing("other")[0], "schema_version": 2}
    path.write_text(path.read_text() + '{"broken\n[1]\n' + json.dumps(other) + "\n" + '{"session_id": 7, "n"')
    made = read([path])
    assert totals(made.facts) == (1, 1, 1)
    assert [notice.partition(": ")[2] for notice in made.notices] == [
        "1 lines of a schema version that is not known are skipped",
        "3 lines that are no records are skipped",
    ]


def test_lives_of_one_name_are_different_sessions(tmp_path: Path) -> None:
    one, two = failing(run="a")[0], failing(run="b")[1]
    made = read([write(tmp_path / "1.jsonl", [one]), write(tmp_path / "2.jsonl", [two])])
    assert totals(made.facts) == (1, 0, 0)


def test_late_outcomes_and_other_refusals_do_not_count(tmp_path: Path) -> None:
    failure, retry = failing()
    refusal = {**failing("x")[0], "event": "call", "decision": "deny", "code": "budget.max_calls"}
    lines = [failure, {**retry, "late": True}, refusal, {**retry, "n": 3, "ts_ms": START + 9}]
    assert totals(read([write(tmp_path / "calls.jsonl", lines)]).facts) == (1, 1, 1)


def test_a_clock_that_goes_back_labels_nothing(tmp_path: Path) -> None:
    failure, retry = failing()
    path = write(tmp_path / "calls.jsonl", [failure, {**retry, "ts_ms": START - 5_000}])
    assert totals(read([path]).facts) == (1, 0, 0)


@table("times", [None, -5, 10**17])
def test_records_without_times_have_no_day(tmp_path: Path, times: int | None) -> None:
    path = write(tmp_path / "calls.jsonl", [{**record, "ts_ms": times, "elapsed_ms": None} for record in failing()])
    facts = read([path]).facts
    ((day, _, what),) = facts.of(Situation)
    assert isinstance(what, Situation)
    assert (day, what.delay, what.age) == (UNDATED, UNKNOWN, UNKNOWN)


def test_transcripts_count_too(tmp_path: Path) -> None:
    call = {"session_id": "s", "tool": "t", "arguments": {"q": 1}, "is_error": True, "error_type": "timeout", "ts": 1e9}
    worked = {**call, "is_error": False, "error_type": None, "ts": 1e9 + 3}
    path = write(tmp_path / "calls.jsonl", [call, worked, {**call, "session_id": "u"}])
    assert totals(read([path]).facts) == (2, 1, 1)


def test_calls_of_other_programs_are_put_in_the_order_of_their_times(tmp_path: Path) -> None:
    call = {"session_id": "s", "tool": "t", "sig": 1}
    rows = [{**call, "ts_ms": START + 9, "status": "ok"}, {**call, "ts_ms": START, "status": "error"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    facts = read([tmp_path / "a.parquet"]).facts
    assert totals(facts) == (1, 1, 1)
    assert [getattr(fact.what, "error", None) for fact in facts.of(Situation) if fact.what] == ["other"]


@pytest.mark.system
def test_spark_counts_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from guardrails.offline.learning.spark import read_on_spark

    path = write(tmp_path / "calls.jsonl", many())
    settings = {"spark.sql.shuffle.partitions": "4", "spark.default.parallelism": "4"}
    assert told(read_on_spark("local[2]", [str(path)], settings).facts) == expected()
    with pytest.raises(TrainingError, match="cannot read"):
        read_on_spark("local[2]", [str(tmp_path / "missing.jsonl")])
