"""
A model's score is a sum of look-ups.
"""

import math

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.scoring import Scorer, Term, key_of, probability


def test_what_is_not_in_the_model_weighs_nothing(model: RetryModel) -> None:
    assert model.probability("never seen", "conflict", 0, 0) == probability(0.25)


def test_a_name_may_hold_the_separator(model: RetryModel) -> None:
    odd = "odd|name\n\"'"
    assert math.isclose(model.probability(odd, "timeout", 0, 0), probability(0.25 + 1.0 - 0.5 + 2.0))


def test_a_factor_without_a_level_leaves_its_terms_out() -> None:
    assert key_of(("tool", "error"), {"error": "timeout"}) is None
    assert Scorer(1.0, [Term(("tool",), {"a": 5.0})], frozenset()).logit({"error": "timeout"}) == 1.0


@given(st.floats(-800, 800))
def test_a_probability_is_one_however_large_the_score(logit: float) -> None:
    p = probability(logit)
    assert 0 <= p <= 1
    assert math.isclose(p + probability(-logit), 1)


def test_context_and_action_add_up(model: RetryModel) -> None:
    levels = {**model.levels("search", "timeout", 0), "delay": "1", "between": "0"}
    scorer = model.scorer
    assert math.isclose(scorer.context(levels) + scorer.action(levels), scorer.logit(levels))
