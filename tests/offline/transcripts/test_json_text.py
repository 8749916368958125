"""
The JSON of transcripts: of lines or of one document, not strict, or broken.
"""

from typing import Any

import pytest

from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.json_text import parse, values_of
from tests.tables import table


@table(
    "text, value",
    [
        (b'"\\ud800"', "\ud800"),
        (b'{"a": Infinity}', {"a": float("inf")}),
        (b"\xef\xbb\xbf1", 1),
        (b"[1]", [1]),
        (b"12345678901234567890123", 12345678901234567890123),
        (b"-9223372036854775809", -9223372036854775809),
        (b"18446744073709551615", 2**64 - 1),
    ],
)
def test_json_is_read_as_programs_that_are_not_strict_write_it(text: bytes, value: Any) -> None:
    assert parse(text) == value


@table("text", [b"", b"{", b"\x00", b"\xff", b"[" * 5000, b"[" * 200_000 + b"]" * 200_000, b"1" * 5000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the kind is the whole contract
        parse(text)


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
        ('{\n "a": [1, 2,\n 3', [], []),
        ("}{", [], []),
        ("", [], []),
        (" \n\n ", [], []),
    ],
)
def test_a_document_and_lines_are_known_from_each_other(text: str, found: Any, broken: list[int]) -> None:
    report = Report()
    assert list(values_of(text.encode(), report, "f")) == found
    assert [line for _, line in report.broken] == broken
