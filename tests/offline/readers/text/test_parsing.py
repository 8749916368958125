"""
The JSON values of a transcript.
"""

from typing import Any

import pytest

from guardrails.offline.readers import Report
from guardrails.offline.readers.text import parsing
from guardrails.offline.readers.text.parsing import TOO_LONG, parse, parse_exactly, parsed_lines, parsed_values
from tests.tables import table


def values(text: str | bytes) -> tuple[list[tuple[int, Any]], Report]:
    report = Report()
    data = text if isinstance(text, bytes) else text.encode()
    return list(parsed_values(data.split(b"\n"), report, "f")), report


@table(
    "text, value",
    [
        (b'"\\ud800"', "\ud800"),
        (b'{"a": NaN, "b": Infinity}', None),
        (b"\xef\xbb\xbf1", 1),
        (b"[1]", [1]),
        (b"12345678901234567890123", 12345678901234567890123),
        (b"-9223372036854775809", -9223372036854775809),
        (b"18446744073709551615", 2**64 - 1),
    ],
)
def test_json_is_read_as_programs_that_are_not_strict_write_it(text: bytes, value: Any) -> None:
    assert value is None or parse_exactly(text) == value
    assert isinstance(parse(text), object)


@table("text", [b"", b"{", b"\x00", b"\xff", b"[" * 5000, b"[" * 200_000 + b"]" * 200_000, b"1" * 5000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    for read in (parse, parse_exactly):
        try:
            read(text)
        except ValueError:
            continue
        assert text.startswith(b"1"), "orjson makes a float of a long integer"


def test_lines_that_are_no_objects_are_broken_and_blank_ones_are_not() -> None:
    report = Report()
    lines = [b'{"a": 1}', b"", b"\r", b"  ", b"[1]", b"{", TOO_LONG, b'{"a": 2}\r']
    assert list(parsed_lines(lines, report, "f")) == [(1, {"a": 1}), (8, {"a": 2})]
    assert report.broken == [("f", 5), ("f", 6), ("f", 7)]


@table(
    "text, found, broken",
    [
        ('{"a": 1}', [(1, {"a": 1})], []),
        ('\n\n{"a": 1}\n', [(3, {"a": 1})], []),
        ('{\n "a": 1\n}\n', [(1, {"a": 1})], []),
        ('[\n {"a": 1}\n]', [(1, [{"a": 1}])], []),
        ('[{"a": 1},\n{"a": 2}]', [(1, [{"a": 1}, {"a": 2}])], []),
        ('{"a": 1}\n{"a": 2}\n', [(1, {"a": 1}), (2, {"a": 2})], []),
        ('{"a": \n{"a": 2}\n{"a": 3', [(2, {"a": 2})], [1, 3]),
        ('{"a": \n{"b"\n{"c": 3}\n', [(3, {"c": 3})], [1, 2]),
        ('{"a": 1}\n7\nx\n{"a": 2}', [(1, {"a": 1}), (2, 7), (4, {"a": 2})], [3]),
        ('{\n "a": [1, 2,\n 3', [(1, {"a": [1, 2]})], [3]),
        ('{"a": [{"b": "cc"}, {"d": "e', [(1, {"a": [{"b": "cc"}, {}]})], [1]),
        ("}{", [], [1]),
        ('{"a": 1}}', [], [1]),
        ("", [], []),
        (" \n\n ", [], []),
    ],
)
def test_a_document_and_lines_are_told_apart(text: str, found: Any, broken: list[int]) -> None:
    read, report = values(text)
    assert read == found
    assert [line for _, line in report.broken] == broken


def test_a_document_that_is_too_long_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_DOCUMENT", 1000)
    read, report = values("[\n" + "1,\n" * 1000 + "1]")
    assert read == []
    assert "more than 0 MB is not read" in report.notices[0]


def test_only_so_many_broken_lines_are_named_but_all_are_counted() -> None:
    read, report = values('{"a": 1}\n' + "x\n" * 3000)
    assert (len(read), report.broken_count, len(report.broken)) == (1, 3000, 1000)
