"""
A11: records of any kind become facts; nothing is counted twice, whatever files, clocks and processes do.
"""

import gzip
import json
import os
import random
import subprocess
import sys

from collections import defaultdict
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


ROOT = str(Path(__file__).parents[3])
START = 20_000 * 86_400_000
Line = dict[str, Any]


def line(name: str, n: int, row: CallRow, run: str = "r") -> Line:
    """
    The record of a row as the library writes it, as far as it is read.
    """
    made = {"schema_version": 1, "session_id": name, "run": run, "n": n, "tool": row.tool, "sig": row.sig}
    made |= {"event": "settle", "ts_ms": row.ended_ms, "duration_ms": (row.ended_ms or 0) - (row.started_ms or 0)}
    made |= {"elapsed_ms": row.elapsed_ms, "error_type": row.error_type, "retry_after_ms": row.retry_after_ms}
    made |= {"status": "error" if row.error_type else "ok", "mutates": row.changes, "result": {"text": "found"}}
    refused = {"event": "call", "decision": "deny", "code": "validation.arguments", "arguments": {"x": [1, 2]}}
    return made | (refused if row.error_type == INVALID else {})


def failing(name: str = "s", run: str = "r") -> list[Line]:
    """
    A failure, and its retry a second later, which works.
    """
    rows = [CallRow("t", 1, "timeout", START, START, 0), CallRow("t", 1, None, START + 1_000, START + 1_000, 1_000)]
    return [line(name, n, row, run) for n, row in enumerate(rows, 1)]


def session(rng: random.Random) -> list[CallRow]:
    """
    A session made up at random: runs, repeats, refusals, calls that overlap.
    """
    clock = began = START + rng.randrange(10**9)
    rows = []
    for _ in range(rng.randrange(1, 50)):
        tool = rng.choice(("search", "book", 'a "quoted"\nname; --'))
        error = rng.choices((None, INVALID, "timeout", "not_found"), (40, 5, 27, 28))[0]
        clock += rng.choice((0, 10, 900, 3_000, 9_000, 70_000, 400_000))
        sig = None if rng.random() < 0.03 else rng.randrange(4) + 4 * len(tool)
        after = rng.choice((None, None, 500, 40_000)) if error not in (None, INVALID) else None
        ran = error != INVALID
        started, age = clock - rng.choice((0, 5_000)) * ran, clock - began if ran else None
        rows.append(CallRow(tool, sig, error, started, clock, age, after, not ran or rng.random() < 0.5))
    return rows


def write(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return path


def counted(facts: Iterable[tuple[Any, tuple[float, float]]]) -> dict[Any, list[float]]:
    """
    The counts without the groups of sessions, which each engine makes in its own way.
    """
    made = defaultdict[Any, list[float]](lambda: [0, 0])
    for fact, counts in facts:
        known = made[fact.day, fact.what]
        made[fact.day, fact.what] = [have + more for have, more in zip(known, counts, strict=True)]
    return made


ROWS = [session(random.Random(number)) for number in range(40)]
MANY = [line(f"s-{number}", n, row) for number, rows in enumerate(ROWS) for n, row in enumerate(rows, 1)]
MANY.sort(key=lambda one: one["ts_ms"])
"""Their records, in the order of time."""
EXPECTED = counted(
    (fact, (1, worked)) for at, rows in enumerate(ROWS) for fact, worked in facts_of((at, row) for row in rows)
)


def totals(facts: Facts) -> tuple[float, float, float]:
    """
    Failures, retries and retries that worked.
    """
    retries = facts.of(Situation).values()
    return facts.failures, sum(n for n, _ in retries), sum(s for _, s in retries)


def test_records_become_the_facts_of_their_sessions(tmp_path: Path) -> None:
    path = write(tmp_path / "calls.jsonl", MANY)
    made = read([path])
    assert counted(made.facts.items()) == EXPECTED
    assert (made.files, made.notices) == (1, [])
    assert made.facts.of(Correction)
    # A blank line before the first record changes no group of sessions.
    path.write_text(f"\n{path.read_text()}")
    assert read([path]).facts == made.facts


@pytest.mark.system
def test_files_and_formats_make_no_difference(tmp_path: Path) -> None:
    half = len(MANY) // 2
    apart, packed, parquet = (tmp_path / name for name in ("apart", "packed", "parquet"))
    for folder in (apart, packed, parquet):
        folder.mkdir()
    write(apart / "1.jsonl", MANY[half:])
    write(apart / "2.jsonl", MANY[:half])
    (packed / "calls.jsonl.gz").write_bytes(gzip.compress(write(tmp_path / "calls.jsonl", MANY).read_bytes()))
    names = [*MANY[0].keys() - {"result", "arguments", "schema_version"}, "code"]
    pq.write_table(pa.Table.from_pylist([{name: one.get(name) for name in names} for one in MANY]), parquet / "a")
    # All of them hold the same: a copy of records counts once.
    for place in (apart, packed, parquet, tmp_path):
        assert counted(read([place]).facts.items()) == EXPECTED


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


FAILURE, RETRY = failing()
REFUSAL = {**failing("x")[0], "event": "call", "decision": "deny", "code": "budget.max_calls"}
CALL = {"session_id": "s", "tool": "t", "arguments": {"q": 1}, "is_error": True, "error_type": "timeout", "ts": 1e9}
WORKED = {**CALL, "is_error": False, "error_type": None, "ts": 1e9 + 3}


@table(
    "lines, expected",
    [
        # Lives of one name are different sessions.
        ([FAILURE, failing(run="b")[1]], (1, 0, 0)),
        # Late outcomes and other refusals do not count.
        ([FAILURE, {**RETRY, "late": True}, REFUSAL, {**RETRY, "n": 3, "ts_ms": START + 9}], (1, 1, 1)),
        # A clock that goes back labels nothing.
        ([FAILURE, {**RETRY, "ts_ms": START - 5_000}], (1, 0, 0)),
        # Transcripts count too.
        ([CALL, WORKED, {**CALL, "session_id": "u"}], (2, 1, 1)),
    ],
)
def test_a_failure_and_its_retry_are_counted(
    lines: list[Line], expected: tuple[float, float, float], tmp_path: Path
) -> None:
    assert totals(read([write(tmp_path / "calls.jsonl", lines)]).facts) == expected


def test_records_without_times_have_no_day(tmp_path: Path) -> None:
    for ms in (None, -5, 10**17):
        path = write(tmp_path / "calls.jsonl", [{**record, "ts_ms": ms, "elapsed_ms": None} for record in failing()])
        ((day, _, what),) = read([path]).facts.of(Situation)
        assert isinstance(what, Situation)
        assert (day, what.delay, what.age) == (UNDATED, UNKNOWN, UNKNOWN)


def test_calls_of_other_programs_are_put_in_the_order_of_their_times(tmp_path: Path) -> None:
    call = {"session_id": "s", "tool": "t", "sig": 1}
    rows = [{**call, "ts_ms": START + 9, "status": "ok"}, {**call, "ts_ms": START, "status": "error"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    facts = read([tmp_path / "a.parquet"]).facts
    assert totals(facts) == (1, 1, 1)
    assert [getattr(fact.what, "error", None) for fact in facts.of(Situation)] == ["other"]


SORTING = """
import resource, sys
from guardrails.offline.learning import rows

rows._SETTINGS["memory_limit"] = sys.argv[2]
facts = rows.read([sys.argv[1]]).facts
print(int(facts.failures), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.system
def test_lines_are_sorted_within_a_limit_of_memory(tmp_path: Path, long: bool) -> None:
    # GUARDRAILS_HARD=long: ten million lines; the rest is what Python and DuckDB are.
    count, memory = (10_000_000, "1200MB") if long else (300_000, "250MB")
    path, sessions = tmp_path / "calls.jsonl", count // 40
    own = {"session_id": "s%d", "n": "%d", "ts_ms": "%d"}
    failed, worked = (json.dumps({**record, **own}).replace('"%d"', "%d") + "\n" for record in failing())
    with path.open("w") as file:
        for n, session in ((n, session) for n in range(40) for session in range(sessions)):
            file.write((worked if n % 3 else failed) % (session, n, START + n * 1_000))
    (tmp_path / "sorting.py").write_text(SORTING)
    command = [sys.executable, str(tmp_path / "sorting.py"), str(path), memory]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": ROOT})
    failures, peak_mb = map(int, done.stdout.split())
    assert failures == sessions * 14
    # A process begins with the peak of the one that started it, which is more than few lines take.
    assert peak_mb < 1_500, peak_mb


@pytest.mark.system
def test_spark_counts_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from guardrails.offline.learning.spark import read_on_spark

    path = write(tmp_path / "calls.jsonl", MANY)
    settings = {"spark.sql.shuffle.partitions": "4", "spark.default.parallelism": "4"}
    assert counted(read_on_spark("local[2]", [str(path)], settings).facts.items()) == EXPECTED
    with pytest.raises(TrainingError, match="cannot read"):
        read_on_spark("local[2]", [str(tmp_path / "missing.jsonl")])
