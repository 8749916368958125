"""
Fields of foreign JSON.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.transcripts import fields
from tests.tables import table


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(ANYTHING)
def test_no_value_is_refused(value: Any) -> None:
    assert isinstance(fields.listed(value), list)
    assert fields.mapping(value).get("a") is None or isinstance(value, dict)
    assert fields.text(value) is None or value
    for number in (fields.count(value), fields.time_ms(value), fields.amount(value)):
        assert number is None or 0 <= number <= 2**54
    fields.arguments_of(value)


@table(
    "value, expected",
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T00:00:00.0006", 1_767_225_600_001),
        ("2026-01-01T02:00:00+02:00", 1_767_225_600_000),
        ("2026-01-01T00:00:00.123456789Z", 1_767_225_600_123),
        ("1969-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("soon", None),
        ("", None),
        (1_767_225_600, 1_767_225_600_000),
        (1_767_225_600.0004, 1_767_225_600_000),
        (1_767_225_600_000, 1_767_225_600_000),
        (1e300, None),
        (float("nan"), None),
        (True, None),
        (None, None),
    ],
)
def test_times_are_milliseconds_since_1970(value: Any, expected: int | None) -> None:
    assert fields.time_ms(value) == expected


@table(
    "value, expected", [('{"a": 1}', {"a": 1}), ("", {}), (None, None), ("{", "{"), ({"a": 1}, {"a": 1}), ("[1]", [1])]
)
def test_arguments_are_what_their_text_says(value: Any, expected: Any) -> None:
    assert fields.arguments_of(value) == expected
