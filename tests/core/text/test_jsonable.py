"""
Any Python value as a type of JSON.
"""

import dataclasses
import datetime as dt
import sqlite3
import uuid

from collections import ChainMap, OrderedDict, deque
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import count
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NoReturn

from pydantic import BaseModel, RootModel

from guardrails.core.text.jsonable import dumps, plain, repaired
from tests.tables import table


class Stars(IntEnum):
    FOUR = 4


class Kind(Enum):
    SUITE = "suite"
    RAW = b"raw"


@dataclasses.dataclass
class Room:
    name: str
    beds: Any = 2


@dataclasses.dataclass(slots=True)
class Half:
    there: int
    missing: int = dataclasses.field(init=False)


class Hotel(BaseModel):
    name: str
    opened: dt.date
    extra: Any = None


class Tags(RootModel[list[str]]):
    pass


class Array:
    """
    What numpy's arrays and scalars show of themselves.
    """

    def __init__(self, *data: Any, ndim: int = 1) -> None:
        self.data = data
        self.ndim = ndim

    def __getitem__(self, part: slice) -> "Array":
        return Array(*self.data[part])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    def tolist(self) -> Any:
        return list(self.data) if self.ndim else self.data[0]


class Table:
    """
    What pandas' tables show of themselves.
    """

    ndim = 2

    def __init__(self, **columns: Any) -> None:
        self.columns = columns

    def keys(self) -> list[str]:
        return list(self.columns)

    def __getitem__(self, key: str) -> Any:
        return self.columns[key]


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Hostile(Silent):
    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


class Answering(Silent):
    def model_dump(self, **options: object) -> object:
        return self


class Older:
    def model_dump(self) -> dict[str, int]:
        return {"a": 1}


def failing() -> Iterator[int]:
    yield 1
    raise OSError("disk gone")


def named(value: object) -> str:
    """
    The value in the name of a test, alike in every process: neither an address nor the order of a set is.
    """
    said = repr(value)
    return type(value).__name__ if " at 0x" in said or isinstance(value, frozenset) else said


@table(
    ("value", "expected"),
    [
        (Kind.SUITE, "suite"),
        (Kind.RAW, "raw"),
        (Room("a", {1}), {"name": "a", "beds": {1}}),
        (Hotel(name="a", opened=dt.date(2026, 1, 2)), {"name": "a", "opened": "2026-01-02", "extra": None}),
        (Tags(["a"]), ["a"]),
        (Older(), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (ChainMap({"a": 1}, {"a": 2}), {"a": 1}),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.items(), [("a", 1)]),
        (map(str, [1, 2]), ["1", "2"]),
        (failing(), [1, "OSError('disk gone')"]),
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"\xff\x00"), {"base64": "/wA=", "bytes": 2}),
        (memoryview(b"text"), "text"),
        (Decimal("0.10"), "0.10"),
        (PurePosixPath("a/b"), "a/b"),
        (ValueError("bad"), "ValueError('bad')"),
        (1 + 2j, "(1+2j)"),
        (int, "<class 'int'>"),
        (Hotel, f"<class '{Hotel.__module__}.Hotel'>"),
        (Array(1, 2), [1, 2]),
        (Table(a=[1], b=[2]), {"a": [1], "b": [2]}),
        (Array(7, ndim=0), 7),
        (Array([1], [2], ndim=2), [[1], [2]]),
    ],
)
def test_each_kind_of_value_has_its_form(value: object, expected: object) -> None:
    assert plain(value, 65_536) == expected


@table(
    "value",
    [
        "text",
        1,
        True,
        None,
        [1],
        (1,),
        {"a": 1},
        OrderedDict(a=1),
        Stars.FOUR,
        dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        dt.date(2026, 1, 2),
        uuid.UUID(int=1),
    ],
)
def test_what_json_or_orjson_knows_stays_itself(value: object) -> None:
    assert plain(value, 65_536) is value


@table("kind", [Silent, Hostile, Answering])
def test_what_does_not_describe_itself_is_named_by_its_type(kind: type) -> None:
    assert f"{kind.__name__} object at 0x" in plain(kind(), 65_536)


def test_a_row_of_a_database_keeps_its_names() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        row = connection.execute("SELECT 1 AS id, 'a' AS name").fetchone()

    assert plain(row, 65_536) == {"id": 1, "name": "a"}


def test_a_dataclass_with_a_missing_field_is_described() -> None:
    assert plain(Half(1), 65_536).startswith("<")


def test_a_model_that_pydantic_cannot_write_keeps_its_fields() -> None:
    odd = object()

    assert plain(Hotel(name="a", opened=dt.date(2026, 1, 2), extra=odd), 65_536) == {
        "name": "a",
        "opened": dt.date(2026, 1, 2),
        "extra": odd,
    }


def test_a_set_that_has_no_order_keeps_all_members() -> None:
    assert sorted(plain({1, "a"}, 65_536), key=str) == [1, "a"]


@table(
    "value",
    [
        range(10**12),
        dict.fromkeys(range(5_000)).keys(),
        deque(range(5_000)),
        frozenset(range(5_000)),
        Array(*range(5_000)),
    ],
)
def test_a_long_collection_ends_where_more_cannot_fit(value: object) -> None:
    assert plain(value, 1_000) == list(range(1_000))


def test_an_endless_iterator_ends_and_says_so() -> None:
    *items, last = plain(count(), 1_000)

    assert items == list(range(len(items)))
    assert last == {"_truncated": True, "omitted": None}


@table("value", [OrderedDict(a=1), [Room("a")], {"a": Stars}, 2**64, "\ud800", {1: 2}])
def test_nothing_is_written_unseen(value: object) -> None:
    assert dumps(value) is None
    assert dumps([Hostile(), value]) is None


@table(
    ("broken", "whole"),
    [
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00a", "\ufffda"),
        ("\ud83d\ud83d\ude00z", "\ufffd😀z"),
        ("\ude00\ud83dz", "\ufffd\ufffdz"),
        ("é😀", "é😀"),
    ],
)
def test_surrogate_pairs_are_joined_and_lone_ones_replaced(broken: str, whole: str) -> None:
    assert repaired(broken) == whole
