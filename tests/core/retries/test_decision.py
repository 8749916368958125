"""
What follows from a failure, by expected value.
"""

import math
import timeit

from dataclasses import replace
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.guards.retryable import NEXT
from guardrails.core.retries.context import Context, Settled, candidates, context_of
from guardrails.core.retries.decision import CACHED, INSTEAD, TRANSIENT, Decider, Stakes, decider_of
from guardrails.core.retries.model import Golden, RetryModel
from guardrails.core.retries.model_format import parse
from guardrails.core.retries.scoring import Term, probability
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import ERROR_TYPES
from tests.core.retries.conftest import text
from tests.core.retries.pinned import SPEC
from tests.tables import table


def after(failures: int = 0, *, error: Any = "timeout", header: int | None = None, since: int = 0) -> Context:
    trail = [Settled("search", 1, error, 1_000)] * failures
    return context_of(SPEC, trail, Settled("search", 1, error, 1_000 + since), 1_000, header)


def decider(model: RetryModel, **stakes: Any) -> Decider:
    return Decider(model, Stakes(**stakes))


def test_the_wait_is_the_smallest_within_a_tenth_of_the_best(model: RetryModel) -> None:
    made = decider(model).advise("search", "timeout", after(), left=9)
    # At once: 1.75 - 2; after two seconds 1.75 - 1; after five and more 1.75 - .5 (first try).
    assert (made.retryable, made.wait_ms, made.next_action) == (True, 5_000, "retry")
    assert made.p == pytest.approx(probability(0.25 + 1.0 + 0.5 - 0.0))


def test_a_wait_that_costs_more_than_it_brings_is_not_advised(model: RetryModel) -> None:
    assert decider(model, wait_cost_per_s=0.2).advise("search", "timeout", after()).wait_ms == 2_000
    assert decider(model, wait_cost_per_s=0.4).advise("search", "timeout", after()).wait_ms == 0
    assert not decider(model, retry_cost=0.9).advise("search", "timeout", after()).retryable


def test_no_wait_is_longer_than_the_policy_lets_it_be(model: RetryModel) -> None:
    assert decider(model, max_wait_ms=2_000).advise("search", "timeout", after()).wait_ms == 2_000
    assert decider(model, max_wait_ms=1).advise("search", "timeout", after()).wait_ms == 0


def test_a_wait_is_never_below_a_retry_after_header(model: RetryModel) -> None:
    for header in (1, 4_321, 7_000, 59_999):
        made = decider(model).advise("search", "timeout", after(header=header))
        assert made.wait_ms >= header
    assert decider(model).advise("search", "timeout", after(header=7_000)).wait_ms == 7_000


def test_an_expensive_tool_is_not_called_again_for_the_same_chance(model: RetryModel) -> None:
    assert decider(model).advise("search", "timeout", after(), cost=500_000).retryable
    assert not decider(model).advise("search", "timeout", after(), cost=800_000).retryable
    assert decider(model, success_usd=2.0).advise("search", "timeout", after(), cost=800_000).retryable


def test_as_many_retries_remain_as_would_pay_if_each_failed_like_this_one(model: RetryModel) -> None:
    advise = decider(model).advise
    assert [advise("search", "timeout", after(), left=left).retries for left in (1, 2, 3, 9)] == [1, 2, 3, 3]
    assert advise("search", "timeout", after(2), left=9).retries == 1
    assert not advise("search", "timeout", after(3), left=9).retryable
    assert not advise("search", "timeout", after(), left=0).retryable


@table("failures", [0, 1, 2, 3])
@table("wait_ms", [0, 2_000, 15_000])
def test_one_more_failure_is_reckoned_with_as_the_session_would_see_it(
    model: RetryModel, failures: int, wait_ms: int
) -> None:
    document = SPEC.document()
    factors = {**document["context"], "tool_run": [0, 1, 2], "since": [1_000, 10_000]}
    del factors["fail_share"]  # it stays as it is
    spec = FeatureSpec.parse({**document, "context": factors})
    trail = [Settled("search", 1, "timeout", 1_000 * n) for n in range(failures + 2)]
    trail[-1] = trail[-1]._replace(ended_ms=1_000 * failures + wait_ms)
    seen, later = (context_of(spec, trail[:n], trail[n], 1_000, header) for n, header in ((-2, 9_000), (-1, None)))
    foreseen = Decider(replace(model, spec=spec), Stakes())._after(seen, wait_ms)
    assert (spec.decode_context(foreseen.code), foreseen.since_ms) == (spec.decode_context(later.code), later.since_ms)


@table("left", [7, 8, 9, 1_000_000])
def test_a_retry_that_always_pays_may_be_made_as_often_as_the_policy_lets_it(left: int) -> None:
    always = parse(text(intercept=3.0, terms=[], golden=[Golden("", "auth", 0, 0, probability(3.0))]))
    assert decider(always).advise("search", "timeout", after(), left=left).retries == left


def test_a11_a_declared_flag_is_a_prior_that_evidence_outweighs(model: RetryModel) -> None:
    def p(tool: str, declared: bool | None) -> float:
        return decider(model, max_wait_ms=0).advise(tool, "timeout", after(), declared=declared).p

    def odds(tool: str, declared: bool) -> float:
        free, said = p(tool, None), p(tool, declared)
        return math.log(said / (1 - said)) - math.log(free / (1 - free))

    # 20 of 20 + 60 retries that were seen: a quarter of what it says is left.
    assert odds("search", declared=True) == pytest.approx(0.5)
    assert odds("search", declared=False) == pytest.approx(-1.0, abs=0.01)
    assert odds("new", declared=True) == pytest.approx(2.0)


@table(
    ("tool", "error", "action"),
    [
        ("search", "auth", "ask_user"),
        ("search", "validation", "fix_arguments"),
        ("lost", "validation", "ask_user"),
        ("search", "precondition", "fix_precondition"),
        ("search", "exec_nonzero", "give_up"),
        ("search", "tool_missing", "give_up"),
    ],
)
def test_what_to_do_instead_is_what_pays(tool: str, error: Any, action: str) -> None:
    terms = [
        Term(
            ("error",),
            {"auth": -5.0, "validation": -6.0, "precondition": -4.0, "exec_nonzero": -4.0, "tool_missing": -5.0},
        ),
        Term(("error", "between"), {"precondition|1": 7.0}),
    ]
    model = parse(text(terms=terms, golden=[Golden("", "auth", 0, 0, probability(-4.75))]))
    made = decider(model).advise(tool, error, after(error=error))
    assert (made.retryable, made.retries, made.next_action) == (False, 0, action)


@table(
    ("stakes", "action", "worth"),
    [
        # What is repaired works 19 times of 20, what is corrected 8 times of 10 (and so the retry of it is no better).
        ({}, "fix_precondition", 0.9526 - 0.1 - 0.2),
        ({"retry_cost": 0.0, "fix_cost": 0.0}, "fix_precondition", 0.9526),
        ({"retry_cost": 0.7, "fix_cost": 0.25}, "fix_precondition", 0.9526 - 0.95),
        ({"retry_cost": 0.7, "fix_cost": 0.26}, "give_up", 0.0),
        ({"retry_cost": 0.25, "fix_cost": 0.71}, "give_up", 0.0),
    ],
)
def test_a_repair_is_worth_its_chance_without_the_price_of_the_call_and_that_of_repairing(
    stakes: dict[str, float], action: str, worth: float
) -> None:
    terms = [Term(("error",), {"precondition": -4.0}), Term(("error", "between"), {"precondition|1": 7.0})]
    model = parse(text(intercept=0.0, terms=terms, golden=[Golden("", "precondition", 0, 0, probability(-4.0))]))
    made: Any = decider(model, **stakes)._instead(
        "t", "precondition", after(error="precondition"), stakes.get("retry_cost", 0.1)
    )
    assert made == (action, pytest.approx(worth, abs=1e-4))


@table(
    ("retry_cost", "fix_cost", "action"),
    [
        (0.1, 0.2, "fix_arguments"),
        (0.0, 0.0, "fix_arguments"),
        (0.2, 0.53, "fix_arguments"),
        (0.2, 0.61, "ask_user"),
        (0.61, 0.2, "ask_user"),
    ],
)
def test_a_correction_is_worth_its_chance_without_the_price_of_the_call_and_that_of_correcting(
    retry_cost: float, fix_cost: float, action: str
) -> None:
    model = parse(text(corrections={("", "validation"): (10.0, 8.0)}))
    chance = model.correction("t", "validation") or 0
    assert 0.75 < chance <= 0.8
    stakes = {"retry_cost": retry_cost, "fix_cost": fix_cost}
    made: Any = decider(model, **stakes)._instead("t", "validation", after(error="validation"), retry_cost)
    assert made == (action, pytest.approx(max(chance - retry_cost - fix_cost, 0) if action != "ask_user" else 0))


@table("cost", [0, 200_000])
@table(("retry_cost", "wait_cost"), [(0.0, 0.0), (0.1, 0.002), (0.3, 0.01)])
def test_a_wait_is_worth_its_chance_without_the_price_of_the_call_and_that_of_waiting(
    model: RetryModel, retry_cost: float, wait_cost: float, cost: int
) -> None:
    made = decider(model, retry_cost=retry_cost, wait_cost_per_s=wait_cost)
    price = retry_cost + cost / 1_000_000
    tries = made._tries("search", "timeout", after(), 0.0, price, repaired=False)
    assert len({one.wait_ms for one in tries}) == len(tries) > 3
    for one in tries:
        assert one.value == pytest.approx(one.p - retry_cost - cost / 1_000_000 - wait_cost * one.wait_ms / 1_000)


@table("left", [1, 3, 9])
def test_a_retry_that_works_one_time_in_seven_is_tried_once(left: int) -> None:
    p = 0.14
    logit = math.log(p / (1 - p))
    seldom = parse(text(intercept=logit, terms=[], evidence={}, golden=[Golden("", "auth", 0, 0, probability(logit))]))
    first = decider(seldom).advise("search", "timeout", after(), left=left)
    assert (first.retryable, first.retries) == (True, 1)
    again = decider(seldom).advise("search", "timeout", after(1), left=left, tried=True)
    assert (again.retryable, again.retries, again.next_action) == (False, 0, "give_up")
    # Whoever says that a try costs little has more of them.
    assert decider(seldom, retry_cost=0.01).advise("search", "timeout", after(), left=left).retries == left


def test_a_transient_failure_that_does_not_pay_leaves_nothing_to_be_repaired(model: RetryModel) -> None:
    assert decider(model, retry_cost=0.99).advise("search", "timeout", after()).next_action == "give_up"


def test_every_kind_has_something_to_do_instead() -> None:
    assert set(INSTEAD) | TRANSIENT == set(ERROR_TYPES) - {"other"}
    assert {kind: action for kind, (action, _) in NEXT.items()} == INSTEAD


contexts = st.builds(
    lambda failures, header, since: after(failures, header=header, since=since),
    st.integers(0, 5),
    st.none() | st.integers(0, 200_000),
    st.integers(0, 400_000),
)


@given(context=contexts, cost=st.integers(0, 1_000_000), left=st.integers(0, 12), declared=st.none() | st.booleans())
def test_what_is_kept_is_what_would_be_decided_again(
    model: RetryModel, context: Context, cost: int, left: int, declared: bool | None
) -> None:
    kept = decider_of(model, Stakes())
    fresh = decider(model).advise("search", "timeout", context, declared=declared, cost=cost, left=left)
    assert kept.advise("search", "timeout", context, declared=declared, cost=cost, left=left) == fresh


@given(context=contexts, left=st.integers(0, 12), cost=st.integers(0, 1_000_000))
def test_advice_keeps_its_promises(model: RetryModel, context: Context, left: int, cost: int) -> None:
    stakes = Stakes()
    made = Decider(model, stakes).advise("search", "timeout", context, cost=cost, left=left)
    waits = {wait.wait_ms for wait in candidates(SPEC, context.since_ms, context.retry_after_ms)}
    assert made.wait_ms in waits
    assert 0 < made.p < 1
    assert made.retryable is (made.retries > 0)
    assert made.retries <= left
    if made.retryable:
        price = stakes.retry_cost + cost / 1_000_000 + stakes.wait_cost_per_s * made.wait_ms / 1_000
        assert made.p > price
        assert made.next_action == "retry"


def test_made_up_tools_do_not_fill_the_memory(model: RetryModel) -> None:
    made = decider(model)
    for number in range(CACHED + 500):
        made.advise(f"tool {number}", "timeout", after())
    assert len(made._kept) <= CACHED


def test_a_decision_that_was_made_before_is_a_look_up(model: RetryModel) -> None:
    made = decider(model)
    context = after(1)
    reference = {(str(i), i): i for i in range(100)}

    def best(work: Any) -> float:
        return min(timeit.repeat(work, number=5_000, repeat=7))

    looked_up = best(lambda: reference.get(("7", 7)))
    again = best(lambda: made.advise("search", "timeout", context, left=3))
    # About six look-ups; one is some 0.08 us.
    assert again < 25 * looked_up
