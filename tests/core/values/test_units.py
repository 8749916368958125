"""
Durations and sizes as people write them.
"""

import re

from dataclasses import dataclass
from typing import Annotated, Any

import jsonschema_rs
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.values import units
from guardrails.core.values.schema import Ge, Schema, json_schema
from guardrails.core.values.units import ByteSize, Duration, byte_size, duration_ms, duration_s, glob, matcher
from tests.tables import table


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    timeout: Annotated[Duration, Ge(1)] | None = None
    max_bytes: ByteSize = 65_536


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
    got = {True: "`true`", None: "nothing"}.get(written, f"`{str(written)[:40]}`")
    with pytest.raises(ValueError, match=f"^{re.escape(f'not a {forms}, got {got}')}$"):
        parse(written)


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.booleans(), st.binary()))
def test_reading_is_total_a_value_or_a_value_error(value: object) -> None:
    for parse in (duration_ms, duration_s, byte_size):
        try:
            read = parse(value)
        except ValueError:
            continue

        assert read >= 0


def test_the_schema_of_a_setting_allows_what_may_be_written() -> None:
    named: dict[str, Schema] = {}
    json_schema(Settings, named)
    is_valid = jsonschema_rs.validator_for(named["Settings"]).is_valid
    right = ({"timeout": "10m", "max_bytes": "64KiB"}, {"timeout": 1.5, "max_bytes": 65_536}, {"timeout": None})
    wrong = ({"timeout": "24 hours"}, {"max_bytes": "64KB"})
    assert [is_valid(one) for one in (*right, *wrong)] == [True] * 3 + [False] * 2


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
