"""
Shares of few tries.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.shrinkage import Beta, Count, best_wait, beta_prior, priors, wilson
from tests.tables import table


@table(
    ("count", "low", "high"),
    [(Count(10, 5), 0.2365931, 0.7634069), (Count(20, 1), 0.008881, 0.2361318), (Count(4, 4), 0.5101092, 1.0)],
)
def test_an_interval_is_wilsons(count: Count, low: float, high: float) -> None:
    assert list(wilson(count)) == pytest.approx([low, high], abs=1e-6)


def test_nothing_is_known_without_tries() -> None:
    assert wilson(Count(0, 0)) == (0.0, 1.0)


@given(n=st.floats(0.01, 1e6), share=st.floats(0, 1))
def test_an_interval_holds_the_share_and_stays_between_0_and_1(n: float, share: float) -> None:
    low, high = wilson(Count(n, n * share))
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1


def test_groups_that_are_alike_are_drawn_together_and_others_are_left_alone() -> None:
    alike = beta_prior([Count(50, 25), Count(40, 20), Count(60, 30), Count(30, 16)], 0.5)
    apart = beta_prior([Count(50, 1), Count(40, 39), Count(60, 2), Count(30, 30)], 0.5)
    assert alike.strength > 100
    assert apart.strength < 2


def test_the_strength_is_where_the_marginal_likelihood_is_largest() -> None:
    groups = [Count(12, 3), Count(30, 20), Count(7, 1), Count(90, 41), Count(15, 9)]

    def likelihood(strength: float) -> float:
        a, b = 0.4 * strength, 0.6 * strength
        return sum(
            math.lgamma(a + s)
            + math.lgamma(b + n - s)
            - math.lgamma(strength + n)
            + math.lgamma(strength)
            - math.lgamma(a)
            - math.lgamma(b)
            for n, s in groups
        )

    found = beta_prior(groups, 0.4).strength
    assert all(likelihood(found) >= likelihood(found * factor) - 1e-9 for factor in (0.2, 0.8, 0.98, 1.02, 1.25, 5))


@given(st.floats(0.01, 0.99), st.floats(0.1, 1e4), st.floats(0, 1e6), st.floats(0, 1))
def test_a_shrunk_rate_lies_between_the_prior_and_the_share(
    mean: float, strength: float, n: float, share: float
) -> None:
    rate = Beta(mean, strength).rate(Count(n, n * share))
    assert min(mean, share) - 1e-9 <= rate <= max(mean, share) + 1e-9


def test_a_rare_error_type_leans_on_all_types() -> None:
    found = priors({("a", "timeout"): Count(1000, 500), ("b", "conflict"): Count(1, 0)})
    assert found["timeout"].mean == pytest.approx(0.5, abs=0.01)
    assert 0.2 < found["conflict"].mean < 0.5


def test_the_best_wait_is_the_first_within_a_tenth_of_the_best() -> None:
    assert best_wait([0.1, 0.55, 0.6, 0.2]) == 1
    assert best_wait([0.1, 0.5, 0.6]) == 2
    assert best_wait([0.0, 0.0]) == 0
