"""
Shares as evidence.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.quality.suggestions import (
    bound,
    least,
    likely,
    most,
    others,
    right,
    summed,
    within,
    wrong,
)
from guardrails.offline.quality.tally import Odds
from tests.tables import table


@table("n, s, low, high", [(10, 5, 0.2366, 0.7634), (20, 20, 0.8389, 1.0), (100, 0, 0.0, 0.0370), (0, 0, 0.0, 1.0)])
def test_the_bounds_are_those_of_wilson(n: int, s: int, low: float, high: float) -> None:
    assert least(Odds(n, s)) == pytest.approx(low, abs=5e-5)
    assert most(Odds(n, s)) == pytest.approx(high, abs=5e-5)


@table(
    "n, s, is_right, is_wrong",
    [
        (0, 0, False, False),
        (34, 34, False, False),
        (35, 35, True, False),
        (100, 95, False, False),
        (200, 200, True, False),
        (200, 199, False, False),
        (200, 189, False, False),
        (3, 0, False, True),
        (2, 0, False, False),
        (100, 90, False, True),
        (30, 27, False, False),
    ],
)
def test_few_repeats_prove_nothing_in_either_direction(n: int, s: int, is_right: bool, is_wrong: bool) -> None:
    assert right(Odds(n, s)) is is_right
    assert wrong(Odds(n, s)) is is_wrong


def test_other_tools_may_have_been_wrong_now_and_then() -> None:
    assert likely(Odds(200, 190))
    assert not likely(Odds(200, 189))
    assert not likely(Odds(34, 34))


@given(st.integers(0, 500), st.integers(0, 500))
def test_no_figures_are_right_and_wrong_at_once(s: int, rest: int) -> None:
    odds = Odds(s + rest, s)
    assert not (right(odds) and wrong(odds))
    assert others(others(odds)) == odds
    assert 0 <= least(odds) <= most(odds) <= 1


def test_a_bound_is_rounded_to_the_side_that_promises_less() -> None:
    assert bound(">", 0.89999) == "95 % sure > 89.9 %"
    assert bound("<", 0.10001) == "95 % sure < 10.1 %"


def test_parts_add_up_within_a_window() -> None:
    odds = {1: Odds(10, 9), 3: Odds(5, 5), 20: Odds(2, 0)}
    assert within(odds, 3) == Odds(15, 14)
    assert within(odds, 20, after=1) == Odds(7, 5)
    assert summed([]) == Odds()
