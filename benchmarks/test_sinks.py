"""
What a record costs: `put`, which writes a batch now and then; a line; and when it is read back.

R is a fixed piece of pure Python, so that figures of two machines can be compared by their ratio to it.
"""

import itertools
import statistics
import time

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from pytest_benchmark.fixture import BenchmarkFixture

from guardrails.sinks import Entry, Erasing, JsonLines, Record, read, to_line


RECORD: Record = {
    "schema_version": 1,
    "event": "call",
    "session_id": "trip-42",
    "n": 17,
    "ts_ms": 1_770_000_000_000,
    "seq": 9,
    "turn": 4,
    "id": "call_9",
    "tool": "search_hotels",
    "sig": -5_123_456_789_012_345_678,
    "arguments": orjson.Fragment(b'{"city":"Shibuya","guests":2,"max_price":150}'),
    "decision": "allow",
    "code": None,
    "denials": [],
    "nudges": [],
    "cost": 5000,
    "mutates": False,
}
SIZE = 400
PUTS = 1000


def _reference() -> int:
    """R: twenty stores into a dict, and their sum."""
    store = {}
    for number in range(20):
        store[number] = number
    return sum(store.values())


def _reference_ns() -> float:
    def once() -> float:
        start = time.perf_counter_ns()
        for _ in itertools.repeat(None, 1000):
            _reference()
        return (time.perf_counter_ns() - start) / 1000

    return statistics.median(once() for _ in range(20))


def _report(benchmark: BenchmarkFixture, each: int) -> None:
    # With --benchmark-disable there are none.
    if benchmark.stats is None:
        return

    ns = benchmark.stats.stats.median * 1e9 / each
    reference = _reference_ns()
    benchmark.extra_info.update(median_ns=round(ns, 1), R_ns=round(reference, 1), ratio_to_R=round(ns / reference, 3))
    print(f"\n{benchmark.name}: {ns:.0f} ns each, R {reference:.0f} ns, ratio {ns / reference:.2f}")


def _run(benchmark: BenchmarkFixture, function: Callable[[], object], each: int, **settings: Any) -> None:
    pedantic: Any = benchmark.pedantic
    pedantic(function, **{"rounds": 100, "warmup_rounds": 5, **settings})
    _report(benchmark, each)


@pytest.mark.parametrize("record", [RECORD, partial(dict, RECORD)], ids=["record", "made late"])
def test_put(benchmark: BenchmarkFixture, tmp_path: Path, record: Entry) -> None:
    sink = JsonLines(tmp_path / "records.jsonl")

    def puts() -> None:
        put = sink.put
        for _ in itertools.repeat(None, PUTS):
            put(record, SIZE)

    _run(benchmark, puts, PUTS, setup=lambda: sink.flush() and None)
    sink.close()
    assert sink.dropped == 0


TEXT = "def token_of(key: str) -> str:\n    return the_string_of(key)\n" * 16


@pytest.mark.parametrize("kept", ["plain", "all", "no arguments", "redacted", "a secret", "text with words"])
def test_line(benchmark: BenchmarkFixture, kept: str) -> None:
    redact = ("arguments.city",) if kept == "redacted" else ()
    erasing = Erasing(redact, "hash" if kept == "no arguments" else "full", redact_secrets=kept != "plain")
    given = {"a secret": {"user": "anna", "password": "x" * 12}, "text with words": {"path": "a.py", "text": TEXT}}
    record = {**RECORD, "arguments": orjson.Fragment(orjson.dumps(given[kept]))} if kept in given else RECORD

    def lines() -> None:
        for _ in itertools.repeat(None, 100):
            to_line(erasing(record))

    _run(benchmark, lines, 100, rounds=20)


def test_write(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with JsonLines(tmp_path / "records.jsonl") as sink:

        def puts() -> None:
            for _ in itertools.repeat(None, PUTS):
                sink.put(RECORD, SIZE)
            assert sink.flush()

        _run(benchmark, puts, PUTS, rounds=30)


def test_read(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(RECORD) * PUTS)
    _run(benchmark, lambda: sum(1 for _ in read(path)), PUTS, rounds=30)
