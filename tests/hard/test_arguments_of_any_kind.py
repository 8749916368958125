"""
Arguments and results of any kind through the whole of a call: signature, validation, envelope and record.

The long form (GUARDRAILS_HARD=long) tries a million.
"""

import datetime as dt
import math
import random
import uuid

from decimal import Decimal
from typing import Any

import pytest

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.hard import odd_values


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.dictionaries(st.text(), json_like, max_size=4) | st.text() | st.binary(), json_like)
@example({"city": "\ud800"}, {"a": math.nan})
@example({1: "a", "1": "b", None: 2}, {dt.date(2026, 1, 1): uuid.UUID(int=1)})
@example('{"city": "x", "city": "y"}', Decimal("1e400"))
def test_a_call_never_raises_signs_alike_and_is_recorded_as_json(given: Any, result: Any) -> None:
    odd_values.hold(given, result)


@pytest.mark.parametrize("levels", [100, 2_100, 100_000])
def test_nor_does_one_that_is_nested_deeply(levels: int) -> None:
    odd_values.hold({"city": "x", "more": odd_values.deep(levels)}, odd_values.deep(levels))


def test_nor_does_one_that_holds_itself_or_is_large() -> None:
    odd_values.hold(odd_values.Circle(), odd_values.Circle())
    odd_values.hold({"city": "x" * 10_000_000}, b"\xff" * 10_000_000)


@pytest.mark.slow
def test_nor_does_any_of_many_drawn_at_random(long: bool) -> None:
    rng = random.Random(20_261_122)
    for number in range(1_000_000 if long else 5_000):
        state = rng.getstate()
        try:
            odd_values.hold(odd_values.arguments(rng), odd_values.value(rng))
        except Exception as error:
            rng.setstate(state)
            shown = f"{odd_values.arguments(rng)!a:.300}"
            pytest.fail(f"number {number}, given {shown}: {error!r}")
