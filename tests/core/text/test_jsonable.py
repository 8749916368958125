"""
Any Python value as a type of JSON.
"""

import dataclasses
import datetime as dt

from collections import ChainMap, deque
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from itertools import count
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, RootModel

from guardrails.core.text.jsonable import plain
from tests.tables import table


class Kind(Enum):
    SUITE = "suite"
    RAW = b"raw"


@dataclasses.dataclass
class Room:
    name: str
    beds: Any = 2


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


class Older:
    def model_dump(self) -> dict[str, int]:
        return {"a": 1}


def failing() -> Iterator[int]:
    yield 1
    raise OSError("disk gone")


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
