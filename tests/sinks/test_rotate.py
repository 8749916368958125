"""
The files: rotated by one of many processes, and read back as one.
"""

import json
import re
import time

from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, ReadReport, Record, by_session, read
from guardrails.sinks.rotate import rotated
from tests.sinks.conftest import numbers, run, together


def test_a_file_that_would_grow_too_large_is_renamed_and_all_are_read_in_order(path: Path) -> None:
    with JsonLines(path, rotate_bytes=2_000) as sink:
        for n in range(100):
            sink.put({"n": n, "text": "x" * 90}, 10)
            assert sink.flush()
    names = sorted(each.name for each in path.parent.iterdir())
    assert names[:2] == ["records.000001.jsonl", "records.000002.jsonl"]
    assert names[-1] == "records.jsonl"
    assert all(each.stat().st_size <= 2_000 for each in path.parent.iterdir())
    assert numbers(path) == list(range(100))


def test_of_rotated_files_the_latest_are_kept(path: Path) -> None:
    with JsonLines(path, rotate_bytes=200, keep=2) as sink:
        for n in range(50):
            sink.put({"n": n, "text": "x" * 90}, 10)
            assert sink.flush()
    assert len(rotated(path)) == 2
    found = numbers(path)
    assert found == list(range(found[0], 50))


def test_a_file_is_rotated_once_its_first_record_is_old(path: Path) -> None:
    old: Record = {"n": 1, "ts_ms": round((time.time() - 7_200) * 1000)}
    path.write_text(json.dumps(old, separators=(",", ":")) + "\n")
    with JsonLines(path, rotate_after="1h") as sink:
        for n in (2, 3):
            sink.put({"n": n, "ts_ms": round(time.time() * 1000)}, 10)
            assert sink.flush()
    assert numbers(rotated(path)[0]) == [1]
    assert numbers(path) == [1, 2, 3]


ROTATING = """
import sys
from guardrails.sinks import JsonLines

with JsonLines(sys.argv[1], rotate_bytes=4_000) as sink:
    for n in range(400):
        sink.put({"n": n, "who": sys.argv[2], "text": "x" * 60}, 10)
        if n % 5 == 0:
            sink.flush()
assert (sink.written, sink.failed, sink.dropped) == (400, 0, 0)
"""


@pytest.mark.system
def test_processes_that_rotate_one_file_lose_no_line_and_tear_none(path: Path) -> None:
    together(*[lambda who=who: run(ROTATING, path, who) for who in "abcd"])
    found: dict[str, list[int]] = {}
    for record in read(path):
        found.setdefault(record["who"], []).append(record["n"])
    assert found == {who: list(range(400)) for who in "abcd"}
    assert len(rotated(path)) > 10
    assert all(re.fullmatch(r"records\.\d{6}\.jsonl", each.name) for each in rotated(path))


def test_broken_lines_are_skipped_and_noted(path: Path) -> None:
    path.write_bytes(
        b'{"n":1}\n\n[2]\n{"n":3\n\x00\x00\n{"n":4,"x":"\\ud800"}\n"text"\n{"n":5}\n' + b"[" * 5000 + b'\n{"n":6}'
    )

    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [1, 4, 5, 6]
    assert report == ReadReport(lines=10, broken=[3, 4, 5, 7, 9])


def test_records_by_session_are_in_the_order_of_their_number() -> None:
    records: list[Record] = [
        {"session_id": "a", "n": 2},
        {"session_id": "b", "n": 1},
        {"session_id": "a"},
        {"session_id": "a", "n": 1},
        {"n": 1},
    ]
    assert by_session(records) == {
        "a": [{"session_id": "a", "n": 1}, {"session_id": "a", "n": 2}, {"session_id": "a"}],
        "b": [{"session_id": "b", "n": 1}],
        None: [{"n": 1}],
    }
