"""
Any value as plain JSON, and iterators and bytes made into bounded values.
"""

import asyncio
import base64
import dataclasses
import datetime as dt
import io
import json
import threading

from collections import ChainMap, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from enum import Enum
from itertools import count
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy
import pytest

from pydantic import BaseModel, RootModel

from guardrails import Policy, Truncate
from guardrails.core.text import plain_json
from guardrails.core.text.plain_json import MAX_DEPTH, Copy, collect, collect_async, decoded, to_json, written
from tests.tables import table


@dataclasses.dataclass
class Trip:
    city: str
    stops: Any = None
    _secret: str = "hunter2"


class Listing:
    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def model_dump(self) -> dict[str, Any]:
        return {"rows": self.rows}


ROWS: Any = (number for number in range(3))
FILE, QUEUE = io.StringIO("text"), deque([1, 2])
UNREAD = ROWS.gi_frame.f_lasti, FILE.tell(), len(QUEUE)


@table(("value", "named"), [
    (ROWS, "<generator>"), ({"rows": [ROWS]}, {"rows": ["<generator>"]}), (FILE, "<StringIO>"), (QUEUE, [1, 2]),
    (Trip("Nara", ROWS), {"city": "Nara", "stops": "<generator>"}), (Listing(iter([1])), {"rows": "<list_iterator>"}),
    (threading.Lock(), "<lock>"),
])  # fmt: skip
def test_what_can_be_used_up_is_named_and_not_read(value: object, named: object) -> None:
    assert plain_json.plain(value) == json.loads(to_json(value)) == named
    assert (ROWS.gi_frame.f_lasti, FILE.tell(), len(QUEUE)) == UNREAD


def test_a_copy_shares_nothing_that_can_change() -> None:
    value: dict[str, Any] = {"a": [1, {"b": bytearray(b"x")}], "trip": Trip("Nara", ["Kyoto"])}
    copy = plain_json.plain(value)
    value["a"][1]["b"][0] = 0
    value["a"].append(2)
    value["trip"].stops.clear()
    assert copy == {"a": [1, {"b": "x"}], "trip": {"city": "Nara", "stops": ["Kyoto"]}}


class Kind(Enum):
    SUITE = 's"d'
    RAW = b"raw"


class Hotel(BaseModel):
    name: str
    opened: dt.date
    extra: Any = None


class Tags(RootModel[list[str]]):
    pass


class Text(str):
    __slots__ = ()


class Count(int):
    pass


class Point(NamedTuple):
    x: int
    y: int


class Rows(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("not that way")


@table(("value", "expected"), [
    (Kind.SUITE, 's"d'), (Kind.RAW, "raw"), (Trip("a", {1}), {"city": "a", "stops": [1], "_secret": "hunter2"}),
    (Hotel(name="a", opened=dt.date(2026, 1, 2)), {"name": "a", "opened": "2026-01-02", "extra": None}), (Tags(["a"]), ["a"]),
    (Listing((1,)), {"rows": [1]}), (MappingProxyType({"a": 1}), {"a": 1}), (ChainMap({"a": 1}, {"a": 2}), {"a": 1}),
    ({3, 1, 2}, [1, 2, 3]), (frozenset({"b", "a"}), ["a", "b"]), (deque([1, 2]), [1, 2]), (range(3), [0, 1, 2]),
    ({"a": 1}.values(), [1]), ({"a": 1}.items(), [["a", 1]]), (map(str, [1, 2]), ["1", "2"]), (b"caf\xc3\xa9", "café"),
    (bytearray(b"\xff\x00"), {"base64": "/wA=", "bytes": 2}), (memoryview(b"text"), "text"), (Decimal("0.10"), "0.10"),
    (PurePosixPath("a/b"), "a/b"), (ValueError("bad"), "ValueError('bad')"), (1 + 2j, "(1+2j)"), (int, "<class 'int'>"),
    (Hotel, f"<class '{Hotel.__module__}.Hotel'>"), (numpy.array([1, 2]), [1, 2]), (numpy.int64(7), 7), (numpy.float64(1.5), 1.5),
    (numpy.array([[1], [2]]), [[1], [2]]),
])  # fmt: skip
def test_each_kind_of_value_has_its_form(value: object, expected: object) -> None:
    assert Copy(65_536, consumes=True).of(value) == expected


@table("value", [range(10**12), dict.fromkeys(range(5_000)).keys(), deque(range(5_000)), frozenset(range(5_000)), count()])  # fmt: skip
def test_a_long_collection_ends_where_more_cannot_fit_and_says_so(value: object) -> None:
    copy = Copy(1_000, consumes=True)
    made = copy.of(value)
    assert made == list(range(len(made)))
    assert len(made) <= 1_000
    assert copy.room < 0


@table(("value", "expected"), [
    (2**64, "18446744073709551616"), (-(2**200), str(-(2**200))), (Count(2**70), str(2**70)), (Count(7), "7"),
    ([float("nan"), float("inf")], "[null,null]"), (Text('a"b'), '"a\\"b"'),
    (Point(1, 2), "[1,2]"), (Rows([1, Text("a")]), '[1,"a"]'), (OrderedDict(b=1, a=2**64), '{"b":1,"a":18446744073709551616}'),
    ({"when": dt.date(2026, 1, 2), "s": {2, 1}}, '{"when":"2026-01-02","s":[1,2]}'), ([OrderedDict(), Rows()], "[{},[]]"),
    ({"\ud800": "\udc00"}, '{"\ufffd":"\ufffd"}'), ({1: "a", 1.5: "b", None: "c", False: "d"}, '{"1":"a","1.5":"b","null":"c","false":"d"}'),
    ({(1, 2): 1, b"raw": 2, Kind.SUITE: 3, Text("t"): 4}, '{"[1,2]":1,"raw":2,"s\\"d":3,"t":4}'),
])  # fmt: skip
def test_what_orjson_does_not_write_has_its_form(value: object, expected: str) -> None:
    assert written(plain_json.plain(value)) == expected.encode()


@table("depth", [100, 250, 1_000, 5_000])
@table("kind", [list, tuple])
def test_what_is_too_deep_is_said_so(kind: Any, depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = kind((value,))
    assert (b"nested too deeply" in to_json(plain_json.plain(value))) is (depth > MAX_DEPTH)


# Iterators and bytes


CLOSED: list[Any] = []


def items(item: Any, length: int = 10**9) -> Iterator[Any]:
    """
    Remembers how many were taken of it once it is closed.
    """
    taken = 0
    try:
        while taken < length:
            taken += 1
            yield item
    finally:
        CLOSED.append(taken)


async def later(items: Iterator[Any]) -> AsyncIterator[Any]:
    try:
        for item in items:
            yield item
    finally:
        items.close()  # type: ignore[attr-defined]


def collected(items: Iterator[Any], limit: int, *, is_async: bool) -> tuple[list[Any], bool]:
    return asyncio.run(collect_async(later(items), limit)) if is_async else collect(items, limit)


@table("is_async", [False, True])
@table("item", ["", "x" * 100, 1, None, {}, {"a": "b" * 50}, [[]], b"", b"\xff" * 30, object()])
def test_an_iterator_ends_in_time_and_is_closed(item: Any, is_async: bool) -> None:
    made, complete = collected(items(item), 65_536, is_async=is_async)
    assert (complete, CLOSED.pop()) == (False, len(made) + 1)
    assert 1 <= len(made) <= 65_536
    assert len(collected(items("x" * 97), 10_000, is_async=is_async)[0]) == 100, "about as large as its limit"
    assert collected(items({"id": 1}, 3), 1_000, is_async=is_async) == ([{"id": 1}] * 3, True)


def test_a2_what_an_iterator_raises_is_not_swallowed() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        collect(failing())


@table("kind", [bytes, bytearray, memoryview])
@table(("data", "value"), [
    (b"", ""), ("h\u00e9llo \U0001f600".encode(), "h\u00e9llo \U0001f600"), (b"\xff\xfe", {"base64": "//4=", "bytes": 2}),
    (b"text\x00text", {"base64": "dGV4dAB0ZXh0", "bytes": 9}),
    (b"ascii" * 4000 + b"\xff", {"base64": base64.b64encode(b"ascii" * 4000 + b"\xff").decode(), "bytes": 20_001}),
])  # fmt: skip
def test_bytes_become_text_or_base64(kind: Any, data: bytes, value: Any) -> None:
    assert decoded(kind(data)) == (value, True)


def test_d3_the_model_reads_how_long_cut_bytes_really_are() -> None:
    envelope = Policy([Truncate(max_bytes=1_000)]).session("s").call("read", {}, lambda *_: b"x" * 10_000_000)
    assert envelope.is_complete is False
    assert "of 10,000,000 characters shown]" in envelope.to_json()
    assert envelope.to_json().count("truncated:") == 1
