"""
Settings held to their types: what fits, what is told of all else, and what an editor reads of it.
"""

import json
import re

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import jsonschema_rs
import pytest

from annotated_types import Interval
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from guardrails.core.values import units
from guardrails.core.values.schema import Checked, FromText, Ge, MapType, MinLen, fit, json_schema
from guardrails.core.values.units import ByteSize, Duration, byte_size, duration_ms, duration_s, glob, matcher
from tests.tables import table


class Half(TypedDict):
    number: int
    text: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """
    Two numbers.
    """

    low: int
    """The smaller one."""
    high: int | None = None
    inner: "tuple[Pair, ...]" = ()
    found: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.high is not None and self.high < self.low:
            raise ValueError("high is below low")


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    count: int


def positive(value: int) -> int:
    if value <= 0:
        raise ValueError("no")
    return -value


PLAIN = [bool, int, float, str, None, list[int], tuple[str, ...], dict[str, int], int | None, Literal["a", "ünï"]]
"""Types that pydantic reads as we do."""
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 300), st.sampled_from([2**53 + 1, 0.5, "a", "ünï"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["number", "text", "x"]), inner),
    max_leaves=4,
)


@given(st.sampled_from(PLAIN), VALUES)
def test_a_plain_value_fits_as_pydantic_says_in_strict_mode(kind: Any, value: Any) -> None:
    made, faults = fit(kind, value)
    expected: Any = ValidationError
    with suppress(ValidationError):
        expected = TypeAdapter(list[kind]).validate_json(f"[{json.dumps(value)}]", strict=True)[0]
    assert (ValidationError if faults else made) == expected
    assert faults or repr(made) == repr(expected)


@table(("kind", "value", "made"), [
    (Any, {"a": [1]}, {"a": [1]}), (Half, MappingProxyType({"number": 1}), {"number": 1}), (Duration | None, "30s", 30.0),
    (int | float, 1, 1), (float | int, 1, 1), (Annotated[int, Checked(positive)], 3, -3), (Annotated[Any, FromText(str)], 5, "5"),
    (Pair, {"low": 1, "inner": [{"low": 2}]}, Pair(low=1, inner=(Pair(low=2),))), (tuple[int, str], [1, "a"], (1, "a")),
    (Pair, Pair(low=1, inner=[{"low": 2}]), Pair(low=1, inner=(Pair(low=2),))),  # type: ignore[arg-type]
    (Model, {"count": 3}, Model(count=3)), (Colour, "red", Colour.RED), (Colour, Colour.RED, Colour.RED),
    (Path | None, "a/b", Path("a/b")), (bytes, b"a", b"a"),
    (dict[str, MapType("Two", {"n": int}, make=lambda n: n * 2)], {"a": {"n": 4}}, {"a": 8}),  # type: ignore[misc]
])  # fmt: skip
def test_a_value_that_fits_is_made_what_its_type_is(kind: Any, value: Any, made: Any) -> None:
    assert fit(kind, value) == (made, [])


@table(("kind", "value", "said"), [
    (bool, 1, "not true or false: got it"), (int, True, "not a whole number: got it"), (tuple[str, ...], "ab", "not a list: got it"),
    (tuple[int, str], [1], "Field required"), (Annotated[int, Interval(gt=0, le=9)], 10, "must be at most 9, got `10`"),
    (Half, {"text": "a"}, "missing key `number`"), (Half, {"number": 1, "nuber": 1}, "unknown key `nuber`, did you mean `number`?"),
    (Half, {"number": 1, "zzz": 1}, "unknown key `zzz`, known here: `number`, `text`"), (Pair, {"low": 3, "high": 1}, "high is below low"),
    (Annotated[int, Checked(positive)], 0, "no"), (Annotated[int, "a mark of somebody's"], "x", "must be a valid integer"),
    (Model, {"count": "x"}, "must be a valid integer"), (Colour, "blue", "must be 'red'"), (Model, 7, "must be an object"),
])  # fmt: skip
def test_a_value_that_does_not_fit_is_told_why(kind: Any, value: Any, said: str) -> None:
    _, faults = fit(kind, value)
    assert [fault.sentence("it") for fault in faults] == [said]


def test_every_fault_is_told_at_its_place() -> None:
    _, faults = fit(dict[str, list[Pair]], {"a": [{"low": "1"}, {"high": 2.5, "lwo": 1}], "b": 3})
    told = [(*fault.path, fault.kind) for fault in faults]
    inner = [("a", 0, "low", "value"), ("a", 1, "high", "value"), ("a", 1, "lwo", "key")]
    assert told == [*inner, ("a", 1, "missing"), ("b", "value")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    timeout: Annotated[Duration, Ge(1)] | None = None
    max_bytes: ByteSize = 65_536


def test_the_schema_of_a_type_holds_for_what_may_be_written_and_says_what_its_settings_mean() -> None:
    named: dict[str, Any] = {}
    kind = dict[str, Pair | Settings | Annotated[list[Annotated[int, Interval(ge=1)]], MinLen(1)]]
    held = jsonschema_rs.validator_for({**json_schema(kind, named), "$defs": named})
    right: list[Any] = [{"low": 1, "inner": [{"low": 2}]}, [1], {"timeout": "10m", "max_bytes": "64KiB"}]
    right += [{"timeout": 1.5, "max_bytes": 65_536}, {"timeout": None}]
    wrong: list[Any] = [{"high": 1}, [], [0], {"low": 1, "lwo": 2}, {"timeout": "24 hours"}, {"max_bytes": "64KB"}]
    assert [one for one in (*right, *wrong) if not held.is_valid({"a": one})] == wrong
    assert named["Pair"]["description"] == "Two numbers."
    assert named["Pair"]["properties"]["low"] == {"type": "integer", "description": "The smaller one."}


# Durations and sizes as people write them


@table(("parse", "written", "expected"), [
    *((duration_ms, text, ms) for text, ms in (("30s", 30_000), ("7d", 604_800_000), ("1.5h", 5_400_000), ("0s", 0))),
    *((duration_ms, number, ms) for number, ms in ((30, 30_000), (0.1, 100), (2.5, 2_500), ("36500d", units.MAX_DURATION_MS))),
    (duration_s, "1.5h", 5_400.0), *((byte_size, text, size) for text, size in (("512B", 512), ("64KiB", 65_536))),
    *((byte_size, text, size) for text, size in (("1GiB", 1 << 30), ("1.5KiB", 1_536), (65_536, 65_536), ("4MiB", 4_194_304))),
])  # fmt: skip
def test_a_duration_is_read_to_the_millisecond_and_a_size_in_bytes(parse: Any, written: object, expected: int) -> None:
    assert parse(written) == expected


WRONG = ["24 hours", "30", "", "s", "-5s", "+5s", "1:30", "30S", "10M", " 30s", "30s\n", "1e3s", "٣s", "infs", "1m30s"]
DURATION, SIZE = "duration: write 500ms, 30s, 10m, 24h or 7d", "size: write 65536, 512B, 64KiB, 4MiB or 1GiB"


@table(("parse", "written", "forms"), [
    *((duration_ms, one, DURATION) for one in [*WRONG, "0.5ms", "36501d", -1, float("inf"), 10**40, True, None]),
    *((byte_size, one, SIZE) for one in ["64KB", "2M", "1.5GB", "1000", 1.5, "9999999GiB", -1]),
])  # fmt: skip
def test_what_is_ambiguous_or_wrong_is_refused_with_the_forms_that_work(parse: Any, written: Any, forms: str) -> None:
    got = {None: "nothing"}.get(written, f"`{str(written)[:40]}`")
    with pytest.raises(ValueError, match=f"^{re.escape(f'not a {forms}, got {got}')}$"):
        parse(written)


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.booleans(), st.binary()))
def test_reading_is_total_a_value_or_a_value_error(value: object) -> None:
    for parse in (duration_ms, duration_s, byte_size):
        with suppress(ValueError):
            assert parse(value) >= 0


def test_a_period_of_the_calendar_begins_at_its_midnight_its_monday_and_its_first_day() -> None:
    wednesday = int(datetime(2026, 7, 15, 12, tzinfo=UTC).timestamp() * 1_000)
    starts = [units.Period(per, "Europe/Berlin").since(wednesday) / 1_000 for per in units.CALENDAR]
    written = [datetime.fromtimestamp(start, UTC).strftime("%m-%d %H") for start in starts]
    assert written == ["07-14 22", "07-12 22", "06-30 22"]


SOUND = ["x", "*", "pay_?", "[ab]_*", "[!a]*", "[]]", "[[]", "a[-]b", "a]b", 7, None]


def test_a_glob_is_kept_if_some_name_matches_it_and_refused_if_none_can() -> None:
    assert list(map(glob, SOUND)) == SOUND
    for wrong in ("", "b[", "[]", "[z-a]"):
        with pytest.raises(ValueError, match="matches no name"):
            glob(wrong)


@table(("globs", "matched", "others"), [
    (("get_*", "Read", "[ab]?"), "get_x Read a1", "ReadAll c1 xget_"), ((), "", "x"),
    # Whatever a host puts before them.
    (("**/get_*", "exact"), "get_x a__get_x a/b.get_x a-get_x exact", "a__exact get_a__b forget_x get_x/y"),
])  # fmt: skip
def test_a_name_is_matched_by_any_of_several_globs(globs: Any, matched: str, others: str) -> None:
    found = matcher(globs)
    assert list(filter(found, [*matched.split(), *others.split()])) == matched.split()
