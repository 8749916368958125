"""
What calls with other arguments come to: shrunk, bounded, and less likely with each failure of the kind before.
"""

import math
import re

from itertools import pairwise

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.decision import CORRECTABLE, INSTEAD, Decider, Stakes
from guardrails.core.retries.model import Golden
from guardrails.core.retries.model_format import parse
from guardrails.core.retries.scoring import probability
from guardrails.core.retries.shrinkage import ANY, CORRECTION_STRENGTH, After, Corrections, Count, times
from tests.core.retries.conftest import text
from tests.core.retries.test_decision import after
from tests.tables import table


def counts(most: float = 500) -> st.SearchStrategy[Count]:
    return st.tuples(st.floats(0, most), st.floats(0, 1)).map(lambda made: Count(made[0], made[0] * made[1]))


def runs() -> st.SearchStrategy[dict[int, After]]:
    one = st.tuples(counts(), st.floats(0, 1)).map(lambda made: After(*made[0], made[0].n * made[1]))
    return st.dictionaries(st.integers(0, 6), one)


@given(own=counts(), pooled=counts(), after=runs(), run=st.none() | st.integers(0, 9))
def test_a_rate_is_a_share(own: Count, pooled: Count, after: dict[int, After], run: int | None) -> None:
    made = Corrections({("t", "validation"): own, (ANY, "validation"): pooled}, after).rate("t", "validation", run)
    if own.n + pooled.n == 0:
        assert made is None
    else:
        assert made is not None
        assert 0 <= made <= 1


@given(own=counts(), pooled=counts(), after=runs(), more=st.floats(0, 50))
def test_a_correction_that_worked_makes_the_next_one_likelier_and_one_that_failed_less_likely(
    own: Count, pooled: Count, after: dict[int, After], more: float
) -> None:
    def rate(count: Count) -> float:
        key = (ANY, "validation")
        everyone = pooled._replace(n=pooled.n + 1, s=pooled.s + 0.5)
        return Corrections({("t", "validation"): count, key: everyone}, after).rate("t", "validation", 0) or 0.0

    assert rate(Count(own.n + more, own.s + more)) >= rate(own) - 1e-9
    assert rate(Count(own.n + more, own.s)) <= rate(own) + 1e-9


@given(own=counts(), pooled=counts(), after=runs())
def test_a_longer_run_of_failures_never_makes_a_correction_likelier(
    own: Count, pooled: Count, after: dict[int, After]
) -> None:
    made = Corrections({("t", "other"): own, (ANY, "other"): pooled}, after)
    rates = [made.rate("t", "other", run) or 0.0 for run in range(9)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(rates))


def test_a_share_that_next_to_never_works_gives_a_rate() -> None:
    made = Corrections({(ANY, "other"): Count(1.0, 0.0)}, {0: After(5.0, 5.0, 1e-308)})
    assert made.rate("t", "other", 0) == 0.0


@given(poisoned=st.integers(0, 30), worked=st.booleans())
def test_few_poisoned_counts_move_a_rate_by_no_more_than_their_weight(poisoned: int, worked: bool) -> None:
    own = Count(poisoned, poisoned if worked else 0)
    everyone = Count(1_000, 800)
    made = Corrections({("t", "validation"): own, (ANY, "validation"): everyone}).rate("t", "validation")
    assert made is not None
    assert abs(made - 0.8) <= poisoned / (poisoned + CORRECTION_STRENGTH) + 1e-9


def test_few_counts_of_a_run_hardly_tell() -> None:
    sure, few = ({0: After(n, 0.0, n * 0.8)} for n in (1_000, 1))
    counted = {(ANY, "validation"): Count(1_000, 800)}
    assert Corrections(counted, few).rate("t", "validation", 0) == pytest.approx(0.8 * 10 / 11)
    assert (Corrections(counted, sure).rate("t", "validation", 0) or 1) < 0.01


def test_a_tool_that_was_never_seen_is_judged_by_all_tools_and_an_unknown_kind_by_nothing() -> None:
    made = Corrections({(ANY, "validation"): Count(10, 8)})
    assert made.rate("new", "validation") == pytest.approx(0.8)
    assert made.rate("new", "timeout") is None


def learned(worked: float, error: str = "validation", **more: object) -> Decider:
    own = {("t", error): (100.0, 100 * worked), (ANY, error): (100.0, 100 * worked)}
    hopeless = {"intercept": -5.0, "terms": [], "golden": [Golden("", "auth", 0, 0, probability(-5.0))], "evidence": {}}
    return Decider(parse(text(corrections=own, **hopeless, **more)), Stakes())


def test_a11_what_the_model_corrects_four_times_in_five_is_fixed_without_the_user_and_one_in_ten_asks() -> None:
    often, seldom = (learned(share).advise("t", "validation", after(error="validation")) for share in (0.8, 0.1))
    assert [often.next_action, seldom.next_action] == ["fix_arguments", "ask_user"]
    assert [often.corrected, seldom.corrected] == pytest.approx([0.8, 0.1])


@table("error", sorted(CORRECTABLE - {"validation_error"}))
def test_every_kind_that_other_arguments_mend_follows_what_they_came_to(error: str) -> None:
    kind = error
    made = learned(0.9, error).advise("t", kind, after(error=kind))  # type: ignore[arg-type]
    assert made.next_action == "fix_arguments"
    lost = learned(0.02, error).advise("t", kind, after(error=kind))  # type: ignore[arg-type]
    assert lost.next_action in ("ask_user", "give_up", "fix_precondition")


@table("error", sorted(set(INSTEAD) - CORRECTABLE))
def test_no_model_is_told_to_get_round_what_other_arguments_do_not_mend(error: str) -> None:
    made = learned(0.95, error).advise("t", error, after(error=error))  # type: ignore[arg-type]
    assert made.next_action != "fix_arguments"
    assert made.corrected is None


def test_after_corrections_that_failed_the_user_is_asked() -> None:
    runs = {0: After(100, 80, 70.0), 1: After(50, 10, 35.0), 2: After(50, 2, 35.0)}
    decider = learned(0.7, correction_runs=runs)
    said = [decider.advise("t", "validation", after(run, error="validation")) for run in (0, 1, 2)]
    assert said[0].next_action == "fix_arguments"
    assert said[2].next_action == "ask_user"
    shares = [one.corrected or 0.0 for one in said]
    assert shares == sorted(shares, reverse=True)


def test_of_too_few_calls_no_share_is_told() -> None:
    few = {("t", "validation"): (4.0, 4.0), (ANY, "validation"): (100.0, 80.0)}
    made = Decider(parse(text(corrections=few)), Stakes()).advise("t", "validation", after(error="validation"))
    assert (made.next_action, made.corrected) == ("fix_arguments", None)


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
