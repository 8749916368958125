"""
Quantiles in bounded memory.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.quality.quantiles import ACCURACY, MOST, Quantiles
from tests.tables import table


def sketch(values: list[float]) -> Quantiles:
    made = Quantiles()
    for value in values:
        made.add(value)
    return made


@given(st.lists(st.floats(1, float(MOST)), min_size=1, max_size=300), st.floats(0, 1))
def test_a_quantile_is_off_by_at_most_a_hundredth_of_itself(values: list[float], q: float) -> None:
    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    found = sketch(values).at(q)
    assert found is not None
    assert abs(found - exact) <= ACCURACY * exact * (1 + 1e-9)


@given(st.lists(st.floats(1, 1e9), max_size=200), st.floats(1, 1e9))
def test_how_many_are_above_a_value_is_right_but_for_those_next_to_it(values: list[float], value: float) -> None:
    near = 2 * ACCURACY
    found = sketch(values).above(value)
    assert sum(v > value * (1 + near) for v in values) <= found <= sum(v > value * (1 - near) for v in values)


@table("q, value", [(0, 0), (0.5, 0), (1, 100)])
def test_what_is_below_a_millisecond_counts_as_nothing(q: float, value: float) -> None:
    assert sketch([0, 0.2, 0.999, 100]).at(q) == pytest.approx(value, rel=ACCURACY)


def test_without_values_there_is_no_quantile() -> None:
    assert Quantiles().at(0.5) is None
    assert Quantiles().above(1) == 0


def test_the_memory_does_not_grow_with_the_values() -> None:
    made = Quantiles()
    for exponent in range(4_000):
        made.add(1.02**exponent if exponent < 3_000 else float(MOST) * 2)
    assert made.n == 4_000
    assert len(made.buckets) <= 2_000
    assert made.at(1) == pytest.approx(MOST, rel=ACCURACY)
