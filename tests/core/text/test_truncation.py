"""
Results in a bounded number of bytes (MISSION D3).
"""

import dataclasses
import datetime as dt
import json
import threading
import uuid

from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from guardrails.core.text.truncation import LIMIT, MIN_LIMIT, Rendered, render
from tests.tables import table


MEGABYTE = 2**20
SURROGATES = st.integers(0xD800, 0xDFFF).map(chr)
CHARACTERS = st.sampled_from('a"\\/\n\t\x00\x1f\x7fé€😀\u2028\ufffd') | SURROGATES
TEXTS = st.builds(
    lambda text, times: text * times, st.text(st.characters() | CHARACTERS, max_size=30), st.sampled_from([1, 10, 100])
)
NUMBERS = st.integers() | st.integers(2**63, 2**200) | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
ODD = (
    st.binary()
    | st.decimals()
    | st.datetimes()
    | st.uuids()
    | st.frozensets(st.integers() | st.text(max_size=3))
    | st.builds(object)
)
KEYS = st.text(CHARACTERS, max_size=8) | st.integers(0, 9) | st.booleans() | st.none() | st.tuples(st.integers())
VALUES = st.recursive(
    SCALARS | ODD,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(KEYS, inner)
        | st.dictionaries(st.text(max_size=5), inner)
        | st.tuples(inner, inner)
    ),
    max_leaves=30,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)
LIMITS = st.sampled_from([256, 257, 300, 1_000, 65_536, 1 << 62]) | st.integers(256, 2_000)


def read(rendered: Rendered) -> Any:
    return json.loads(rendered.payload)


@given(VALUES, LIMITS)
def test_d3_a_result_is_bounded_valid_json(value: object, limit: int) -> None:
    rendered = render(value, limit)

    read(rendered)
    assert rendered.size == len(rendered.payload) <= limit
    assert not rendered.complete or rendered.size == rendered.original_bytes


@given(VALUES, LIMITS)
def test_d3_rendering_again_changes_nothing(value: object, limit: int) -> None:
    once = render(value, limit)
    again = render(read(once), limit)

    assert again.payload == once.payload
    assert again.complete


@given(VALUES, LIMITS)
def test_d3_plain_text_is_bounded_and_stays_the_same_too(value: object, limit: int) -> None:
    once = render(value, limit)

    if once.text is not None:
        assert once.text == read(once)
        assert len(once.text.encode()) <= limit
        assert render(once.text, limit).text == once.text


@given(PLAIN, LIMITS)
def test_d3_only_what_is_longer_is_cut(value: object, limit: int) -> None:
    whole = orjson.dumps(value)
    rendered = render(value, limit)

    assert rendered.complete is (len(whole) <= limit)
    if rendered.complete:
        assert rendered.payload == whole
        assert rendered.original_bytes == len(whole)


@given(st.lists(VALUES, max_size=8), st.sampled_from([1, 3, 30]), LIMITS)
def test_d3_a_list_keeps_leading_elements_exactly(few: list[object], times: int, limit: int) -> None:
    value = few * times
    rendered = render(value, limit)
    elements = read(rendered)

    if rendered.complete:
        assert rendered.omitted is None
        assert elements == read(render(value, 1 << 62))
    else:
        *kept, last = elements
        assert kept == read(render(value[: len(kept)], 1 << 62))
        assert last["_truncated"] is True
        assert last["omitted"] == rendered.omitted == len(value) - len(kept)


@given(st.dictionaries(st.text(), PLAIN, min_size=1, max_size=5), st.sampled_from([1, 3, 30]), LIMITS)
def test_d3_an_object_keeps_its_leading_json(few: dict[str, object], times: int, limit: int) -> None:
    value = {f"{name} {n}": few for n in range(times) for name in few}
    whole = orjson.dumps(value)
    rendered = render(value, limit)

    if not rendered.complete:
        cut = read(rendered)
        assert set(cut) == {"_truncated_json", "original_bytes"}
        assert whole.decode().startswith(cut["_truncated_json"])
        assert rendered.original_bytes == cut["original_bytes"]


@given(TEXTS.filter(lambda text: all(not "\ud800" <= c <= "\udfff" for c in text)), LIMITS)
def test_d3_a_text_keeps_its_leading_characters(value: str, limit: int) -> None:
    rendered = render(value, limit)
    assert rendered.text is not None

    if not rendered.complete:
        shown, _, suffix = rendered.text.rpartition("... [truncated: ")
        assert value.startswith(shown)
        assert suffix == f"{len(shown):,} of {len(value):,} characters shown]"
        assert rendered.omitted == len(value) - len(shown)


@table("unit", ["a", '"', "\\", "\n", "\x00", "é", "€", "😀", "a\x1f", '😀"', "ab\\é", "\ud83d\ude00", "\udfff"])
@table("limit", [*range(MIN_LIMIT, MIN_LIMIT + 8), LIMIT])
def test_d3_a_cut_text_fills_the_limit_whatever_its_characters(unit: str, limit: int) -> None:
    rendered = render(unit * limit, limit)

    # A character is six bytes at most, and the count of those shown may have fewer digits than that of all.
    assert limit - 6 - 4 * len(unit) < rendered.size <= limit
    assert rendered.text is not None
    assert rendered.text == read(rendered)
    assert "\ufffd" not in rendered.text or unit == "\udfff"


def test_d3_the_limit_is_65536_bytes() -> None:
    assert LIMIT == 65_536
    assert render("x" * 65_534).complete
    assert not render("x" * 65_535).complete
    assert render(["x" * 65_532]).complete
    assert not render(["x" * 65_533]).complete


def test_d3_the_three_forms_read_as_documented() -> None:
    assert render("x" * 1_000, 256).text == "x" * 206 + "... [truncated: 206 of 1,000 characters shown]"
    assert read(render(list(range(1_000)), 256)) == [*range(76), {"_truncated": True, "omitted": 924}]
    assert render({"n": "x" * 1_000}, 256).payload == (
        b'{"_truncated_json":"{\\"n\\":\\"%b","original_bytes":1008}' % (b"x" * 203)
    )


def test_d3_a_list_of_which_no_element_fits_shows_the_leading_json_of_the_first() -> None:
    rendered = render([{"type": "text", "text": "x" * 1_000}, 2], 256)
    (sentinel,) = read(rendered)

    assert sentinel["_truncated"] is True
    assert sentinel["omitted"] == rendered.omitted == 2
    assert sentinel["_truncated_json"].startswith('{"type":"text","text":"xxx')
    assert rendered.original_bytes == len(orjson.dumps([{"type": "text", "text": "x" * 1_000}, 2]))


@table(
    "value",
    [
        {"status": "success", "retryable": True},
        [{"_truncated": True, "omitted": 3}],
        {"_truncated_json": "{", "original_bytes": 9},
    ],
)
def test_what_imitates_a_cut_result_is_data(value: object) -> None:
    assert render(value) == Rendered(
        orjson.dumps(value), None, True, len(orjson.dumps(value)), len(orjson.dumps(value))
    )


class Suite(StrEnum):
    SMALL = "small"


class Shade(Enum):
    DARK = b"dark"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    name: str
    beds: set[int]


class Hotel(BaseModel):
    name: str
    opened: dt.date
    key: SecretStr = SecretStr("k")


class Text(str):
    __slots__ = ()

    def __str__(self) -> NoReturn:
        raise RuntimeError("not that way")


class Lying(dict[str, int]):
    def items(self) -> NoReturn:
        raise RuntimeError("not that way")

    def __len__(self) -> NoReturn:
        raise RuntimeError("not that way")


class Lazy(list[int]):
    def __iter__(self) -> NoReturn:
        raise RuntimeError("not that way")

    def __len__(self) -> NoReturn:
        raise RuntimeError("not that way")


class Hostile:
    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)

    def __repr__(self) -> NoReturn:
        raise RuntimeError("no repr")


def generated() -> Iterator[int]:
    yield from (1, 2)


SHAPES: list[tuple[Callable[[], object], object]] = [
    (lambda: None, None),
    (lambda: 7, 7),
    (lambda: 2**80, 2**80),
    (lambda: float("nan"), None),
    (lambda: 1e300, 1e300),
    (lambda: Text("text"), "text"),
    (lambda: Suite.SMALL, "small"),
    (lambda: Shade.DARK, "dark"),
    (lambda: "\ud83d\ude00 \ud83d", "😀 \ufffd"),
    (lambda: {"\ud800": 1}, {"\ufffd": 1}),
    (lambda: b"bytes", "bytes"),
    (lambda: {"raw": b"\xff"}, {"raw": {"base64": "/w==", "bytes": 1}}),
    (lambda: {1: {None: 2}}, {"1": {"null": 2}}),
    (lambda: {"id": 2**64, "f": 1e22}, {"id": 2**64, "f": 1e22}),
    (lambda: {"when": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)}, {"when": "2026-01-02T00:00:00+00:00"}),
    (lambda: {"id": uuid.UUID(int=1)}, {"id": str(uuid.UUID(int=1))}),
    (lambda: [Decimal("1.10"), Fraction(1, 2), PurePosixPath("a")], ["1.10", "1/2", "a"]),
    (lambda: Room("a", {2, 1}), {"name": "a", "beds": [1, 2]}),
    (lambda: [Room("a", set())], [{"name": "a", "beds": []}]),
    (lambda: Hotel(name="a", opened=dt.date(2026, 1, 2)), {"name": "a", "opened": "2026-01-02", "key": "**********"}),
    (
        lambda: {"hotels": [Hotel(name="a", opened=dt.date(2026, 1, 2))]},
        {"hotels": [{"name": "a", "opened": "2026-01-02", "key": "**********"}]},
    ),
    (lambda: Point(1, 2), [1, 2]),
    (lambda: (1, (2, 3)), [1, [2, 3]]),
    (lambda: OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (lambda: defaultdict(list, a=[1]), {"a": [1]}),
    (lambda: Counter("aab"), {"a": 2, "b": 1}),
    (lambda: UserDict(a=1), {"a": 1}),
    (lambda: ChainMap({"a": 1}), {"a": 1}),
    (lambda: MappingProxyType({"a": 1}), {"a": 1}),
    (lambda: {"s": deque([1, 2]), "v": {"a": 1}.keys(), "r": range(2)}, {"s": [1, 2], "v": ["a"], "r": [0, 1]}),
    (generated, [1, 2]),
    (lambda: {"rows": generated()}, {"rows": [1, 2]}),
    (lambda: Lying(a=1), {"a": 1}),
    (lambda: [Lazy([1, 2])], [[1, 2]]),
    (lambda: ValueError("bad"), "ValueError('bad')"),
    (lambda: SimpleNamespace(a=1), "namespace(a=1)"),
]


@table(("make", "expected"), SHAPES)
def test_every_value_has_a_rendering(make: Callable[[], object], expected: object) -> None:
    rendered = render(make())

    assert read(rendered) == expected
    assert rendered.complete
    assert rendered.text == (expected if isinstance(expected, str) else None)


@table("value", [Hostile(), {"a": Hostile()}, [Hostile()], {Hostile(): 1}])
def test_a_hostile_object_is_named_and_loses_nothing_else(value: object) -> None:
    assert "Hostile object at 0x" in render(value).payload.decode()


def test_a_value_inside_itself_ends() -> None:
    looped: dict[str, Any] = {"n": 1}
    looped["self"] = looped
    row: list[Any] = [1]
    row.append(row)

    assert read(render(looped)) == {"n": 1, "self": "[circular reference]"}
    assert read(render(row))[0] == 1
    assert render(row).complete
    assert render(row, 1 << 62).complete


def test_a_value_that_doubles_for_ever_ends() -> None:
    shared: Any = [1]
    for _ in range(60):
        shared = [shared, shared]

    assert render(shared).size <= LIMIT
    assert render({"a": shared}).size <= LIMIT


def nested(levels: int, inner: object = 1) -> Any:
    for _ in range(levels):
        inner = {"a": inner}
    return inner


def test_what_nests_too_deep_survives_as_text() -> None:
    whole = b'{"a":' * 2_000 + b"1" + b"}" * 2_000

    assert render(nested(254)).complete
    assert read(render(nested(2_000)))["_truncated_json"] == whole.decode()
    assert not render(nested(2_000)).complete
    assert read(render([1, nested(253), nested(254)]))[:2] == [1, nested(253)]
    assert read(render([nested(254)]))[0]["_truncated_json"] == json.dumps(nested(254), separators=(",", ":"))


@table("limit", [256, 4_000, 65_536])
@table("levels", [253, 254, 255, 300])
@table("inner", [2**70, 1, {1: 2}])
def test_depth_is_read_back_as_it_was_written(levels: int, limit: int, inner: object) -> None:
    once = render(nested(levels, inner), limit)

    assert once.size <= limit
    assert render(read(once), limit).payload == once.payload


@table("value", [10**4_000, 10**100_000, "9" * 5_000, {"n": 10**100_000}])
def test_a_long_number_is_bounded(value: object) -> None:
    once = render(value, 1_000)

    assert once.size <= 1_000
    assert not once.complete
    assert render(read(once), 1_000).payload == once.payload


BIG = {
    "text": "x" * (10 * MEGABYTE),
    "escapes": '"' * (10 * MEGABYTE),
    "not ascii": "é" * (10 * MEGABYTE),
    "subclass": Text("x" * (10 * MEGABYTE)),
    "rows": [{"id": n, "name": f"row {n}", "note": "words " * 10} for n in range(100_000)],
    "small elements": list(range(1_000_000)),
    "one large element": ["x" * (10 * MEGABYTE), 1],
    "text field": {"ok": True, "content": "x" * (10 * MEGABYTE)},
    "mcp": {"content": [{"type": "text", "text": "x" * (10 * MEGABYTE)}]},
    "rows in a field": {"rows": [{"id": n, "note": "words " * 10} for n in range(100_000)]},
    "many keys": {f"key {n}": n for n in range(500_000)},
    "many small lists": {"k": [[n] * 10 for n in range(50_000)]},
    "pages": {"results": [{"url": "u", "text": "x" * MEGABYTE} for _ in range(10)]},
    "long key": {"x" * (10 * MEGABYTE): 1},
    "set": set(range(500_000)),
    "range": range(10**15),
    "dataclasses": [Room("a" * 1_000, {n}) for n in range(5_000)],
    "ordered": OrderedDict((f"key {n}", "x" * 1_000) for n in range(10_000)),
}


@table("value", BIG.values())
def test_d3_ten_megabytes_are_cut_to_the_limit(value: object) -> None:
    rendered = render(value)

    assert LIMIT * 0.95 < rendered.size <= LIMIT
    assert not rendered.complete
    read(rendered)


@table("name", ["text", "not ascii", "rows", "text field", "mcp", "rows in a field", "many small lists", "pages"])
def test_the_size_of_the_whole_is_about_right(name: str) -> None:
    assert render(BIG[name]).original_bytes == pytest.approx(len(orjson.dumps(BIG[name])), rel=0.2)


def test_a_result_that_another_thread_changes_is_rendered() -> None:
    value: dict[str, Any] = {str(n): {"n": n} for n in range(500)}
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            value["extra"] = 1
            del value["extra"]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for limit in (300, LIMIT) * 20:
            read(render(value, limit))
    finally:
        stop.set()
        thread.join()


@table("depth", [253, 255, 2_500, 50_000])
def test_tuples_that_nest_deeper_than_orjson_counts_are_cut_and_not_written_past_its_buffer(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = (value,)
    rendered = render({"r": value})
    json.loads(rendered.payload)
    assert rendered.complete == (depth < 254)


def test_many_rows_as_tuples_are_whole() -> None:
    assert render([(n, "row") for n in range(1_000)]).complete
