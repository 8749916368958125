import itertools
import json

from pathlib import Path

import pytest

from guardrails.sinks import ReadReport, Record, by_session, read
from tests.tables import table


def test_broken_lines_are_skipped_and_noted(path: Path) -> None:
    path.write_bytes(
        b'{"n":1}\n\n[2]\n{"n":3\n\x00\x00\n{"n":4,"x":"\\ud800"}\n"text"\n{"n":5}\n' + b"[" * 5000 + b'\n{"n":6}'
    )

    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [1, 4, 5, 6]
    assert report == ReadReport(lines=10, broken=[3, 4, 5, 7, 9])


def test_reading_streams(path: Path) -> None:
    path.write_bytes(b'{"n":1}\n' * 100_000)
    report = ReadReport()
    assert len(list(itertools.islice(read(path, report), 3))) == 3
    assert report.lines == 3


def test_reading_what_is_not_there_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read(path))


@table("number", [2**63, 2**64 - 1, 2**64, 10**30, -(2**63), -(2**63) - 1, -(10**19), 10**19])
def test_integers_of_any_length_come_back_exact(path: Path, number: int) -> None:
    path.write_text(json.dumps({"sig": -5123456789012345678, "number": number}))
    assert list(read(path)) == [{"sig": -5123456789012345678, "number": number}]


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


def test_two_lives_of_one_name_are_told_apart() -> None:
    records: list[Record] = [
        {"session_id": "s", "run": run, "n": n} for run, n in (("a", 2), ("b", 1), ("a", 1), ("b", 3), ("b", 2))
    ]
    assert [(r["run"], r["n"]) for r in by_session(records)["s"]] == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)]
