"""
The canonical form of what JSON cannot say: that of its plain copy, or none.
"""

import ctypes
import enum
import json
import re

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, RootModel, SecretStr

from guardrails.core.text.signature import canonical, sign
from tests.tables import table


class Color(enum.Enum):
    RED = "red"
    ONE = 1


class Level(enum.IntEnum):
    ONE = 1


class Str(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: Any
    b: Any


class Other(NamedTuple):
    c: Any
    d: Any


@dataclass
class Point:
    x: Any
    y: Any = 0
    seen: InitVar[int] = 0


class Query(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: str
    limit: float = 10
    inner: "Query | None" = None


class Numbers(RootModel[list[float]]):
    pass


JST = timezone(timedelta(hours=9))

DISTINCT: list[Any] = [
    *(None, True, 1, "1", {1}, {"1": 1}, {1: 1}, {(1,): 1}, {None: 1}, {True: 1}, Point(1), Point(2)),
    *(2**64, -(2**64), 10**700, 10**5_000, 1.5, Decimal("2.5"), "\ud800", "\\ud800", "😀", b"\xff", Color.RED),
    *(Query(text="a"), Query(text="a", more=1), UUID(int=1), PurePosixPath("src/**/*.py")),  # type: ignore[call-arg]
    # A time without a zone is another one.
    *(date(2026, 11, 21), time(9, 30), *(datetime(2026, 11, 21, tzinfo=zone) for zone in (None, UTC, JST))),
]


def test_different_things_have_different_forms() -> None:
    forms = {canonical(value) for value in DISTINCT}
    assert None not in forms
    assert len(forms) == len(DISTINCT)


@table(
    ("value", "other"),
    [
        ((1, (2,)), [1, [2]]),
        (Other(1, 2), Pair(1, 2)),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (defaultdict(int, a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({1, 2.0}, frozenset({2, 1.0})),
        ({1.0: "a", None: 2}, {None: 2.0, 1: "a"}),
        ({"e\u0301"}, {"é"}),
        ({("e\u0301", 1): 1}, {("é", 1.0): 1.0}),
        (2**64, float(2**64)),
        ([2**64, "e\u0301", -0.0, float("nan")], (2.0**64, "é", 0, None)),
        ({"\ud800": 1, "a": 1.0}, {"a": 1, "\ud800": 1.0}),
        (Point(x=Color.RED, y={1}), Point(x=Color.RED, y={1.0})),
        (Query(text="é", limit=1), Query(text="e\u0301", limit=1.0)),
        ({1, 2}, [1, 2]),
        (Color.RED, "red"),
        (Level.ONE, True + 0),
        (Str("red"), b"red"),
        (Point(1), {"x": 1, "y": 0}),
        (Numbers([1]), [1.0]),
        (float("inf"), None),
    ],
)
def test_equal_things_have_one_form(value: Any, other: Any) -> None:
    assert canonical(value) is not None
    assert canonical(value) == canonical(other)
    assert canonical({"in": [value]}) == canonical({"in": (other,)})


def fail(*_: object) -> NoReturn:
    raise ValueError("hostile")


def endless() -> Iterator[int]:
    while True:
        yield 1


class HostileMeta(type):
    __hash__ = fail
    __eq__ = fail


class OfHostileMeta(metaclass=HostileMeta):
    pass


class HostileHash:
    __eq__ = fail
    __hash__ = fail


class HostileClass:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise ValueError("hostile")


class HostileMapping(Mapping[str, int]):
    __getitem__ = fail
    __iter__ = fail
    __len__ = fail


class Login(BaseModel):
    password: SecretStr


# Factories, since pytest itself trips over some of these.
UNSIGNABLE: dict[str, Any] = {
    "a metaclass": OfHostileMeta,
    "hash": HostileHash,
    "class": HostileClass,
    "mapping": HostileMapping,
    "object": object,
    "a secret": lambda: SecretStr("a"),
    "a secret in a model": lambda: Login(password=SecretStr("a")),
    "a regular expression": lambda: re.compile("a"),
    "a function": lambda: fail,
    "a generator": endless,
    "a buffer of pointers": lambda: (ctypes.c_void_p * 1)(1),
}


@table("name", UNSIGNABLE)
def test_what_cannot_be_known_is_unsignable_and_never_raises(name: str) -> None:
    value = UNSIGNABLE[name]()
    for arguments in (value, {"a": value}, [1, (value,)], {"a": {1: value}}):
        assert sign("t", arguments) == (None, None, None)


odd = st.recursive(
    st.one_of(
        *(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(st.characters(), max_size=5),
            st.binary(max_size=5),
        ),
        *(st.decimals(), st.fractions(), st.complex_numbers(), st.timedeltas(), st.uuids(), st.ip_addresses()),
        st.datetimes(timezones=st.none() | st.just(UTC)),
        st.sampled_from([Color.RED, Level.ONE, Str("a"), object(), print, SecretStr("a")]),
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.builds(Point, inner, inner)
        | st.dictionaries(
            st.text(st.characters(), max_size=3) | st.integers() | st.binary(max_size=2), inner, max_size=4
        )
        | st.frozensets(st.integers() | st.text(max_size=2) | st.binary(max_size=2), max_size=4)
    ),
    max_leaves=10,
)


@given(odd)
def test_any_value_is_signed_or_unsignable_but_never_raises(value: Any) -> None:
    digest, _, encoded = sign("t", value)
    assert (digest is None) == (encoded is None)
    if encoded is not None:
        json.loads(encoded.decode())
        assert canonical(value) == encoded
