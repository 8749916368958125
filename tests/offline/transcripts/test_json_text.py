"""
The JSON of transcripts: of lines or of one document, not strict, broken, or cut off.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.json_text import MAX_DEPTH, completed, parse, values_of
from tests.tables import table


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def is_start_of(part: Any, whole: Any) -> bool:
    """
    Whether *part* is *whole* with something left out at its end.
    """
    if isinstance(part, dict) and isinstance(whole, dict):
        names = list(whole)[: len(part)]
        return list(part) == names and all(is_start_of(part[name], whole[name]) for name in names)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_start_of, part, whole))

    return bool(part == whole)


@given(st.lists(JSON, min_size=1, max_size=4) | st.dictionaries(st.text(max_size=4), JSON, min_size=1), st.data())
def test_a_cut_text_gives_a_start_of_its_value(value: Any, data: Any) -> None:
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1]))).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    assert is_start_of(completed(text[:cut]), value)


@table("text", [b"", b"1", b'"a', b"{}", b"[1]", b"]", b"[}", b"{]", b"tru", b"\xff", b"[" * 2000])
def test_what_is_not_cut_gives_nothing(text: bytes) -> None:
    assert completed(text) is None


def test_time_and_depth_are_bounded() -> None:
    assert completed(b"[" * MAX_DEPTH) is not None
    assert completed(b'{"a": "' + b"\\" * 1_000_001) == {}
    assert len(completed(b"[" + b'"x",' * 200_000)) == 200_000


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
        ('{\n "a": [1, 2,\n 3', [(1, {"a": [1, 2]})], [3]),
        ('{"a": [{"b": "cc"}, {"d": "e', [(1, {"a": [{"b": "cc"}, {}]})], [1]),
        ("}{", [], []),
        ("", [], []),
        (" \n\n ", [], []),
    ],
)
def test_a_document_and_lines_are_known_from_each_other(text: str, found: Any, broken: list[int]) -> None:
    report = Report()
    assert list(values_of(text.encode(), report, "f")) == found
    assert [line for _, line in report.broken] == broken


def test_only_so_many_broken_lines_are_named_but_all_are_counted() -> None:
    report = Report()
    assert len(list(values_of(b'{"a": 1}\n' + b"x\n" * 3000, report, "f"))) == 1
    assert (report.broken_count, len(report.broken)) == (3000, 1000)
