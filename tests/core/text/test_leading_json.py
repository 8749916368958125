"""
The leading bytes of a value's JSON.
"""

import datetime as dt

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.leading_json import estimate, leading_escaped, leading_items, leading_json
from tests.tables import table


UNBOUNDED = 1 << 62

NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=40,
)


class Text(str):
    __slots__ = ()


class Degrees(float):
    pass


class Count(int):
    pass


class Point(NamedTuple):
    x: int
    y: int


class Colour(Enum):
    RED = 'r"d'


class Rows(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("not that way")


@given(VALUES)
def test_what_orjson_writes_is_written_the_same(value: object) -> None:
    assert leading_json(value, UNBOUNDED) == (orjson.dumps(value), True)


@given(VALUES, st.integers(0, 300))
def test_what_is_too_long_is_a_prefix_of_the_whole(value: object, limit: int) -> None:
    whole = orjson.dumps(value)
    lead, fits = leading_json(value, limit)

    assert lead == whole[:limit]
    assert fits is (len(whole) <= limit)


@table(
    ("value", "expected"),
    [
        (2**64, "18446744073709551616"),
        (-(2**200), str(-(2**200))),
        (Count(2**70), str(2**70)),
        (Count(7), "7"),
        (Degrees(1.5), "1.5"),
        (Degrees("nan"), "null"),
        ([float("nan"), float("inf")], "[null,null]"),
        (Text('a"b'), '"a\\"b"'),
        (Point(1, 2), "[1,2]"),
        (Rows([1, Text("a")]), '[1,"a"]'),
        (OrderedDict(b=1, a=2**64), '{"b":1,"a":18446744073709551616}'),
        ({"when": dt.date(2026, 1, 2), "s": {2, 1}}, '{"when":"2026-01-02","s":[1,2]}'),
        ({"a": []}, '{"a":[]}'),
        ([OrderedDict(), Rows()], "[{},[]]"),
        ({"\ud800": "\udc00"}, '{"\ufffd":"\ufffd"}'),
        ({1: "a", 1.5: "b", None: "c", False: "d"}, '{"1":"a","1.5":"b","null":"c","false":"d"}'),
        ({(1, 2): 1, b"raw": 2, Colour.RED: 3, Text("t"): 4}, '{"[1,2]":1,"raw":2,"r\\"d":3,"t":4}'),
        ({1: "a", "1": "b", "1_": "c"}, '{"1":"a","1_":"b","1__":"c"}'),
        ({chr(0xD800): 1, chr(0xFFFD): 2}, '{"\ufffd":1,"\ufffd_":2}'),
    ],
)
def test_what_orjson_does_not_write_has_its_form(value: object, expected: str) -> None:
    assert leading_json(value, UNBOUNDED) == (expected.encode(), True)


@given(st.lists(VALUES, max_size=20), st.sampled_from([1, 4, 20]), st.sampled_from([0, 1, 5, 6, 7, 50, 300, 10_000]))
def test_leading_elements_are_all_that_fit(few: list[object], times: int, room: int) -> None:
    items = few * times
    parts, kept = leading_items(iter(items), room)
    sizes = [len(orjson.dumps(item)) + 1 for item in items]

    assert b"[%b]" % b",".join(parts) == orjson.dumps(items[:kept])
    assert sum(sizes[:kept]) <= room
    assert kept == len(items) or sum(sizes[: kept + 1]) > room


@given(st.text(st.sampled_from('a"\\\n\x00\x1f\x7fé€😀')), st.integers(-1, 120))
def test_escaped_text_is_cut_between_characters_and_as_late_as_possible(text: str, room: int) -> None:
    body = leading_escaped(text, room)
    shown = orjson.loads(b'"%b"' % body)

    assert text.startswith(shown)
    assert len(body) <= max(room, 0)
    assert shown == text or len(orjson.dumps(text[: len(shown) + 1])) - 2 > room


@table(
    "value",
    [
        {"data": "x" * 1_000_000},
        {"content": [{"type": "text", "text": "x" * 1_000_000}]},
        {"rows": [{"id": n, "name": f"row {n}"} for n in range(20_000)]},
        [["é" * 100] * 100] * 100,
        {f"key {n}": {"a": [n]} for n in range(10_000)},
        {"a": OrderedDict(b=["x" * 100_000])},
    ],
)
def test_an_estimate_is_of_the_right_size(value: object) -> None:
    assert estimate(value) == pytest.approx(len(orjson.dumps(value)), rel=0.2)
