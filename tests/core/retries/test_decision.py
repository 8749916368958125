"""
What follows from a failure, by expected value.
"""

import math
import timeit

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.guards.retryable import HINTS
from guardrails.core.retries.decision import CACHED, advise, curve_of
from guardrails.core.retries.model import RetryModel, logistic, parse
from guardrails.core.retries.serving import Advice, Stakes
from guardrails.core.retries.trail import WAITS_MS, Failure, Settled, extended, failure_of
from guardrails.core.values.errors import CORRECTABLE, INSTEAD, TRANSIENT
from guardrails.core.values.types import ERROR_TYPES
from guardrails.policy.models import cold_model
from tests.core.retries.conftest import constant, text
from tests.tables import table


def after(
    failures: int = 0, *, tool: str = "search", error: str = "timeout", header: int | None = None, since: int = 0
) -> Failure:
    trail: Any = None
    for _ in range(failures):
        trail = extended(trail, Settled(tool, 1, error, 1_000))
    return failure_of(extended(trail, Settled(tool, 1, error, 1_000 + since), header), 1_000)


def said(model: RetryModel, failure: Failure, *, left: int = 1, tried: bool = False, **more: Any) -> Advice:
    """
    The advice at the costs of *more*, but for what is known of the call.
    """
    known = {name: more.pop(name) for name in ("declared", "cost") if name in more}
    return advise(model, Stakes(**more), failure, left=left, tried=tried, **known)


def test_the_wait_is_the_smallest_within_a_tenth_of_the_best(model: RetryModel) -> None:
    made = said(model, after(), left=9)
    # At once: 1.75 - 2; after two seconds 1.75 - 1; after five and more 1.75.
    assert (made.retryable, made.wait_ms, made.next_action) == (True, 5_000, "retry")
    assert made.p == pytest.approx(logistic(1.75))


def test_a_wait_that_costs_more_than_it_brings_is_not_advised(model: RetryModel) -> None:
    assert said(model, after(), wait_cost_per_s=0.2).wait_ms == 2_000
    assert said(model, after(), wait_cost_per_s=0.4).wait_ms == 0
    assert not said(model, after(), retry_cost=0.9).retryable


def test_no_wait_is_longer_than_the_policy_lets_it_be(model: RetryModel) -> None:
    assert said(model, after(), max_wait_ms=2_000).wait_ms == 2_000
    assert said(model, after(), max_wait_ms=1).wait_ms == 0


def test_a_wait_is_never_below_a_retry_after_header(model: RetryModel) -> None:
    for header in (1, 4_321, 7_000, 59_999):
        assert said(model, after(header=header)).wait_ms >= header
    assert said(model, after(header=7_000)).wait_ms == 7_000


def test_an_expensive_tool_is_not_called_again_for_the_same_chance(model: RetryModel) -> None:
    assert said(model, after(), cost=500_000).retryable
    assert not said(model, after(), cost=800_000).retryable
    assert said(model, after(), cost=800_000, success_usd=2.0).retryable


def test_as_many_retries_remain_as_would_pay_if_each_failed_like_this_one(model: RetryModel) -> None:
    assert [said(model, after(), left=left).retries for left in (1, 2, 3, 9)] == [1, 2, 3, 3]
    assert said(model, after(2), left=9).retries == 1
    assert not said(model, after(3), left=9).retryable
    assert not said(model, after(), left=0).retryable


@table("left", [7, 8, 9, 1_000_000])
def test_a_retry_that_always_pays_may_be_made_as_often_as_the_policy_lets_it(left: int) -> None:
    assert said(parse(constant(3.0)), after(), left=left).retries == left


def test_a11_a_declared_flag_is_a_prior_that_evidence_outweighs(model: RetryModel) -> None:
    def odds(tool: str, declared: bool) -> float:
        free, told = (said(model, after(tool=tool), max_wait_ms=0, declared=flag).p for flag in (None, declared))
        return math.log(told / (1 - told)) - math.log(free / (1 - free))

    # 20 of 20 + 60 retries that were seen: a quarter of what it says is left.
    assert odds("search", declared=True) == pytest.approx(0.5)
    assert odds("search", declared=False) == pytest.approx(-1.0)
    assert odds("new", declared=True) == pytest.approx(2.0)


@table(
    "tool, error, action",
    [
        ("search", "auth", "ask_user"),
        ("search", "validation", "fix_arguments"),
        ("lost", "validation", "ask_user"),
        ("search", "precondition", "fix_precondition"),
        ("search", "exec_nonzero", "give_up"),
        ("search", "tool_missing", "give_up"),
    ],
)
def test_what_to_do_instead_is_what_pays(tool: str, error: str, action: str) -> None:
    kinds = ("auth", "validation", "precondition", "exec_nonzero", "tool_missing")
    hopeless = {f"{kind} between {between}": -5.0 for kind in kinds for between in (0, 1)}
    model = parse(text(weights={**hopeless, "precondition between 1": 2.0}))
    made = said(model, after(tool=tool, error=error))
    assert (made.retryable, made.retries, made.next_action) == (False, 0, action)


@table(
    "retry_cost, fix_cost, action",
    [(0.1, 0.2, "fix_arguments"), (0.0, 0.0, "fix_arguments"), (0.2, 0.53, "fix_arguments"), (0.2, 0.61, "ask_user")],
)
def test_a_correction_pays_above_its_costs(retry_cost: float, fix_cost: float, action: str) -> None:
    model = parse(constant(-5.0, corrections={"": {"validation": [10.0, 8.0]}}))
    made = said(model, after(error="validation"), retry_cost=retry_cost, fix_cost=fix_cost)
    assert made.next_action == action


@table("left", [1, 3, 9])
def test_a_retry_that_works_one_time_in_seven_is_tried_once(left: int) -> None:
    seldom = parse(constant(math.log(0.14 / 0.86)))
    first = said(seldom, after(), left=left)
    assert (first.retryable, first.retries) == (True, 1)
    again = said(seldom, after(1), left=left, tried=True)
    assert (again.retryable, again.retries, again.next_action) == (False, 0, "give_up")
    # Whoever says that a try costs little has more of them.
    assert said(seldom, after(), left=left, retry_cost=0.01).retries == left


def test_a_transient_failure_that_does_not_pay_leaves_nothing_to_be_repaired(model: RetryModel) -> None:
    assert said(model, after(), retry_cost=0.99).next_action == "give_up"


def test_every_kind_has_something_to_do_instead() -> None:
    assert set(INSTEAD) | TRANSIENT == set(ERROR_TYPES) - {"other"}
    assert HINTS.keys() == INSTEAD.keys()


def learned(share: float, error: str, n: float = 100) -> RetryModel:
    own = {error: [n, n * share]}
    return parse(constant(-5.0, corrections={"search": own, "": {error: [100, 100 * share]}}))


def test_a11_what_the_model_corrects_four_times_in_five_is_fixed_without_the_user_and_one_in_ten_asks() -> None:
    often, seldom = (said(learned(share, "validation"), after(error="validation")) for share in (0.8, 0.1))
    assert [often.next_action, seldom.next_action] == ["fix_arguments", "ask_user"]
    assert [often.corrected, seldom.corrected] == pytest.approx([0.8, 0.1])


@table("error", sorted(CORRECTABLE - {"validation_error"}))
def test_every_kind_that_other_arguments_mend_follows_what_they_came_to(error: str) -> None:
    assert said(learned(0.9, error), after(error=error)).next_action == "fix_arguments"
    assert said(learned(0.02, error), after(error=error)).next_action != "fix_arguments"


@table("error", sorted(set(INSTEAD) - CORRECTABLE))
def test_no_model_is_told_to_get_round_what_other_arguments_do_not_mend(error: str) -> None:
    made = said(learned(0.95, error), after(error=error))
    assert made.next_action != "fix_arguments"
    assert made.corrected is None


def test_of_too_few_calls_no_share_is_told() -> None:
    made = said(learned(0.8, "validation", n=4), after(error="validation"))
    assert (made.next_action, made.corrected) == ("fix_arguments", None)


failures = st.builds(
    lambda count, header, since: after(count, header=header, since=since),
    st.integers(0, 5),
    st.none() | st.integers(0, 200_000),
    st.integers(0, 400_000),
)


@given(failure=failures, left=st.integers(0, 12), cost=st.integers(0, 1_000_000))
def test_advice_keeps_its_promises(failure: Failure, left: int, cost: int) -> None:
    stakes = Stakes()
    model = parse(text())
    made = said(model, failure, cost=cost, left=left)
    assert made.wait_ms in {max(wait, failure.left_ms or 0) for wait in WAITS_MS}
    assert 0 < made.p < 1
    assert made.retryable is (made.retries > 0)
    assert made.retries <= left
    if made.retryable:
        price = stakes.retry_cost + cost / 1_000_000 + stakes.wait_cost_per_s * made.wait_ms / 1_000
        assert made.p > price
        assert made.next_action == "retry"
    assert said(model, failure, cost=cost, left=left) == made


def test_made_up_tools_do_not_fill_the_memory() -> None:
    model = parse(text())
    for number in range(CACHED + 500):
        said(model, after(tool=f"tool {number}"))
    assert len(model.advised) <= CACHED


def test_advice_that_was_given_before_is_a_look_up(model: RetryModel) -> None:
    failure, stakes = after(1), Stakes()
    reference = {(str(i), i): i for i in range(100)}

    def best(work: Any) -> float:
        return min(timeit.repeat(work, number=5_000, repeat=7))

    looked_up = best(lambda: reference.get(("7", 7)))
    assert best(lambda: advise(model, stakes, failure, left=3)) < 30 * looked_up


@table("error", ERROR_TYPES)
def test_a3_a_new_tool_is_served_by_the_beliefs_through_the_same_decisions(error: str) -> None:
    def told(declared: bool | None = None) -> Advice:
        return said(cold_model(), after(tool="new", error=error), left=3, declared=declared)

    made, yes, no = told(), told(declared=True), told(declared=False)
    assert made.retryable is (error in TRANSIENT)
    assert no.p < made.p < yes.p
    assert not no.retryable


@table("header", [1_000, 7_000, 30_000])
def test_a_header_that_is_waited_for_is_believed(header: int) -> None:
    made = said(cold_model(), after(tool="new", error="rate_limit", header=header), left=3)
    assert (made.retryable, made.wait_ms) == (True, header)
    assert made.p > 0.5


def test_a_curve_says_how_likely_the_first_failure_of_a_session_passes(model: RetryModel) -> None:
    made = dict(curve_of(model, "search", "timeout"))
    assert list(made) == list(WAITS_MS)
    assert made[0] < made[2_000] < made[5_000] == made[60_000] == pytest.approx(logistic(1.75), abs=1e-6)
