"""
Shares of few tries.
"""

import math
import re

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.model import Beta, Count, times, wilson
from tests.tables import table


@table(
    ("count", "low", "high"),
    [
        (Count(10, 5), 0.2365931, 0.7634069),
        (Count(20, 1), 0.008881, 0.2361318),
        (Count(4, 4), 0.5101092, 1.0),
        (Count(0, 0), 0.0, 1.0),
    ],
)
def test_an_interval_is_wilsons(count: Count, low: float, high: float) -> None:
    assert list(wilson(count)) == pytest.approx([low, high], abs=1e-6)


@given(n=st.floats(0.01, 1e6), share=st.floats(0, 1))
def test_an_interval_holds_the_share_and_stays_between_0_and_1(n: float, share: float) -> None:
    low, high = wilson(Count(n, n * share))
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1


@given(st.floats(0.01, 0.99), st.floats(0.1, 1e4), st.floats(0, 1e6), st.floats(0, 1))
def test_a_shrunk_rate_lies_between_the_prior_and_the_share(
    mean: float, strength: float, n: float, share: float
) -> None:
    rate = Beta(mean, strength).rate(Count(n, n * share))
    assert min(mean, share) - 1e-9 <= rate <= max(mean, share) + 1e-9


@table(
    ("share", "said"),
    [
        (0.0, "less than 1 time in 20"),
        (0.1, "1 time in 10"),
        (0.14, "1 time in 7"),
        (0.18, "1 time in 5"),
        (0.5, "1 time in 2"),
        (0.8, "4 times in 5"),
        (0.9, "9 times in 10"),
        (1.0, "more than 19 times in 20"),
    ],
)
def test_a_share_is_said_as_a_person_says_it(share: float, said: str) -> None:
    assert times(share) == said


@given(st.floats(0, 1))
def test_what_is_said_of_a_share_is_true_within_a_fortieth(share: float) -> None:
    worked, tries = map(int, re.findall(r"\d+", times(share)))
    if 1 / 20 <= share <= 19 / 20:
        assert abs(worked / tries - share) <= 1 / 40
        assert 0 < worked < tries
        assert math.gcd(worked, tries) == 1
