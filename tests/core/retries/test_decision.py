"""
What follows from a failure, by expected value.
"""

import math

from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.guards.retryable import HINTS
from guardrails.core.retries.decision import advise
from guardrails.core.retries.model import RetryModel, logistic, parse
from guardrails.core.retries.serving import Advice, Stakes
from guardrails.core.retries.trail import WAITS_MS, Failure, Settled, extended, failure_of
from guardrails.core.values.errors import CORRECTABLE, INSTEAD, TRANSIENT
from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.learning.profiles import curve_of
from guardrails.policy.models import cold_model
from tests.core.retries.conftest import constant, text
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("decision.yaml").read_text())


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
    known = {"declared": more.pop("declared", None), "cost": more.pop("cost", 0)}
    return advise(model, Stakes(**more), failure, left=left, tried=tried, **known)


@table(("stakes", "header", "wait_ms"), CASES["waits"])
def test_the_wait_is_the_smallest_that_pays_above_a_header(stakes: Any, header: Any, wait_ms: Any, model: Any) -> None:
    made = said(model, after(header=header), left=9, **stakes)
    assert (made.wait_ms if made.retryable else None) == wait_ms
    assert made.next_action == ("give_up" if wait_ms is None else "retry")
    assert wait_ms != 5_000 or made.p == pytest.approx(logistic(1.75))


def test_a11_a_declared_flag_is_a_prior_that_evidence_outweighs(model: RetryModel) -> None:
    def odds(tool: str, declared: bool) -> float:
        free, told = (said(model, after(tool=tool), max_wait_ms=0, declared=flag).p for flag in (None, declared))
        return math.log(told / (1 - told)) - math.log(free / (1 - free))

    # 20 of 20 + 60 retries that were seen: a quarter of what it says is left.
    assert odds("search", declared=True) == pytest.approx(0.5)
    assert odds("search", declared=False) == pytest.approx(-1.0)
    assert odds("new", declared=True) == pytest.approx(2.0)


@table(("tool", "error", "action"), CASES["instead"])
def test_what_to_do_instead_is_what_pays(tool: str, error: str, action: str) -> None:
    kinds = ("auth", "validation", "precondition", "exec_nonzero", "tool_missing")
    hopeless = {f"{kind} between {between}": -5.0 for kind in kinds for between in (0, 1)}
    model = parse(text(weights={**hopeless, "precondition between 1": 2.0}))
    made = said(model, after(tool=tool, error=error))
    assert (made.retryable, made.retries, made.next_action) == (False, 0, action)


@table(("retry_cost", "fix_cost", "action"), CASES["corrections"])
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


def test_every_kind_has_something_to_do_instead() -> None:
    assert set(INSTEAD) | TRANSIENT == set(ERROR_TYPES) - {"other"}
    assert HINTS.keys() == INSTEAD.keys()


def learned(share: float, error: str, n: float = 100) -> RetryModel:
    own = {error: [n, n * share]}
    return parse(constant(-5.0, corrections={"search": own, "": {error: [100, 100 * share]}}))


OTHERS = sorted(CORRECTABLE - {"validation_error"})


@table(("error", "share", "corrected"), [
    ("validation", 0.8, 0.8), ("validation", 0.1, 0.1), *((error, share, share) for error in OTHERS for share in (0.95, 0.02)),
    *((error, 0.95, None) for error in sorted(set(INSTEAD) - CORRECTABLE)),
])  # fmt: skip
def test_a11_what_other_arguments_mostly_mend_is_fixed_without_the_user(error: str, share: Any, corrected: Any) -> None:
    made = said(learned(share, error), after(error=error))
    assert (made.next_action == "fix_arguments") is (corrected is not None and share > 0.5)
    assert made.corrected == (None if corrected is None else pytest.approx(corrected))
    assert said(learned(share, error, n=4), after(error=error)).corrected is None, "of too few no share is told"


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


@table("error", ERROR_TYPES)
def test_a3_a_new_tool_is_served_by_the_beliefs_through_the_same_decisions(error: str) -> None:
    def told(declared: bool | None = None) -> Advice:
        return said(cold_model(), after(tool="new", error=error), left=3, declared=declared)

    made, yes, no = told(), told(declared=True), told(declared=False)
    assert made.retryable is (error in TRANSIENT)
    assert no.p < made.p < yes.p
    assert not no.retryable


def test_a_curve_says_how_likely_the_first_failure_of_a_session_passes(model: RetryModel) -> None:
    made = dict(curve_of(model, "search", "timeout"))
    assert list(made) == list(WAITS_MS)
    assert made[0] < made[2_000] < made[5_000] == made[60_000] == pytest.approx(logistic(1.75), abs=1e-6)
