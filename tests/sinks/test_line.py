import collections
import dataclasses
import datetime as dt
import json
import math
import pathlib
import tempfile
import uuid

from decimal import Decimal
from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.plain_json import MAX_DEPTH
from guardrails.sinks import Record, parse_path, read, to_line
from tests.sinks.conftest import written
from tests.tables import table


@dataclasses.dataclass(slots=True)
class Hotel:
    name: str


class Model:
    def model_dump(self) -> dict[str, object]:
        return {"city": "Shibuya", "tags": {"a"}}


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("password is hunter2")


class Sly(dict[str, object]):
    def items(self) -> Any:
        raise RuntimeError


def nested(depth: int, value: Any = 1) -> Any:
    for _ in range(depth):
        value = [value]
    return value


CYCLE: dict[str, Any] = {"x": 1}
CYCLE["self"] = CYCLE
CYCLE["again"] = [CYCLE, CYCLE]


@table(
    ("value", "line"),
    [
        (b"text", "text"),
        (bytearray(b"\xff\x00"), "/wA="),
        (memoryview(b"view"), "view"),
        ({"b", "a"}, ["a", "b"]),
        ((1, (2,)), [1, [2]]),
        (math.nan, None),
        (-math.inf, None),
        ([math.nan, 2**70], [None, 2**70]),
        (2**64, 2**64),
        (-(2**63) - 1, -(2**63) - 1),
        (10**5000, hex(10**5000)),
        ("lone \ud800", "lone \ud800"),
        ({"\udfff": [b"x"]}, {"\udfff": ["x"]}),
        ({(1, 2): 1, b"k": 2}, {"[1, 2]": 1, "k": 2}),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        (Decimal("1.10"), "1.10"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00"),
        ([2**70, dt.date(2026, 1, 2)], [2**70, "2026-01-02"]),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Hotel("Ryokan"), {"name": "Ryokan"}),
        ([Hotel("\ud800")], [{"name": "\ud800"}]),
        (Model(), {"city": "Shibuya", "tags": ["a"]}),
        (collections.ChainMap({"a": 1}), {"a": 1}),
        (Odd(), "<Odd>"),
        ({"deep": [Odd(), 2**70]}, {"deep": ["<Odd>", 2**70]}),
        (Sly(a=2**70), "<Sly>"),
        (iter([1]), "<list_iterator>"),
        (dict, "<type>"),
        (CYCLE, {"x": 1, "self": "<dict>", "again": ["<dict>", "<dict>"]}),
        (orjson.Fragment(b'{"a":\n [1,\n2]}'), {"a": [1, 2]}),
        ([orjson.Fragment(b'{"a":18446744073709551616}')], [{"a": 2**64}]),
    ],
)
def test_no_value_costs_the_record(value: object, line: object) -> None:
    assert written({"n": 1, "value": value, "last": "x"}) == {"n": 1, "value": line, "last": "x"}


def test_what_is_too_deep_is_cut_and_its_neighbours_stay() -> None:
    record = written({"n": 1, "deep": nested(2000), "text": "x"})

    depth, value = 0, record.pop("deep")
    while isinstance(value, list):
        depth, [value] = depth + 1, value

    assert (depth, value) == (MAX_DEPTH, "<list>")
    assert record == {"n": 1, "text": "x"}


TEXT = st.text(st.characters(exclude_categories=()))


JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


ANYTHING = st.recursive(
    JSON_LIKE | st.binary() | st.decimals() | st.complex_numbers() | st.datetimes() | st.floats() | st.builds(Odd),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.binary() | TEXT | st.tuples(TEXT) | st.floats() | st.integers(), inner, max_size=4)
        | st.builds(Hotel, inner)
    ),
    max_leaves=12,
)


def paired(value: Any) -> Any:
    """As JSON has it: two surrogates in a row are one character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, list):
        return [paired(each) for each in value]
    return {key: paired(each) for key, each in value.items()} if isinstance(value, dict) else value


@given(JSON_LIKE)
def test_json_comes_back_as_it_was(value: object) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(to_line({"n": 1, "value": value}))
        file.flush()
        assert list(read(file.name)) == [{"n": 1, "value": paired(value)}]


@given(ANYTHING)
def test_anything_makes_one_whole_line(value: object) -> None:
    record = {"n": 1, "value": value, "arguments": value, "error_message": value, "problems": [value, [value, value]]}
    line = to_line(record, paths=(parse_path("arguments.**.x*"),))

    assert line.count(b"\n") == 1
    assert line.endswith(b"}\n")
    assert json.loads(line)["n"] == 1


@given(ANYTHING)
def test_what_a_line_leaves_out_stays_in_the_record(value: object) -> None:
    record: Record = {"event": "settle", "result": value, "arguments": {"x": value}, "error_message": "of x"}
    before = {**record}
    to_line(record, withheld=frozenset({"result", "arguments"}))
    to_line(record, paths=(parse_path("arguments.x"),))

    assert record.keys() == before.keys()
    assert all(record[key] is before[key] for key in before)
