"""
From facts to a judged model: what is promoted, and what never is.
"""

from collections.abc import Callable

import pytest

from guardrails.core.retries.model import parse
from guardrails.core.retries.trail import Situation
from guardrails.core.values.errors import TrainingError
from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.learning.beliefs import ALONE, BELIEFS, RETRIES, believed, believed_corrections
from guardrails.offline.learning.facts import UNDATED, Correction, Fact, Facts
from guardrails.offline.learning.gate import split_of, verdict_of
from guardrails.offline.learning.train import Learned, learn, shipped_text
from guardrails.policy.models import cold_model
from tests.offline.learning.conftest import DAY, TRUTH, corrections, together, world
from tests.tables import table


Flip = Callable[..., Facts]


@pytest.fixture(scope="module")
def first() -> Learned:
    return learn(world())


def test_every_error_type_has_its_beliefs_and_counts_alike() -> None:
    assert set(BELIEFS) == set(ERROR_TYPES)
    for error in ERROR_TYPES:
        counts = [count for situation, count in believed() if situation.error == error]
        assert sum(count.n for count in counts) == pytest.approx(RETRIES)
        assert all(0 < count.s < count.n for count in counts)
    assert sum(count.n for _, count in believed(ALONE)) == pytest.approx(ALONE * len(ERROR_TYPES))
    assert "validation" in believed_corrections()
    assert not {"timeout", "rate_limit"} & set(believed_corrections())


def test_the_shipped_model_is_what_the_beliefs_give() -> None:
    made, shipped = parse(shipped_text()), cold_model()
    assert made.intercept == pytest.approx(shipped.intercept, abs=1e-3)
    assert dict(made.weights) == pytest.approx(dict(shipped.weights), abs=1e-3)
    assert made.corrections == shipped.corrections


def test_the_same_facts_give_the_same_bytes(first: Learned) -> None:
    backwards = Facts(dict(reversed(world().items())))
    assert learn(backwards).text == first.text


def test_a_first_model_replaces_the_shipped_one_where_it_is_better(first: Learned) -> None:
    assert first.better
    assert first.retries is not None
    assert first.retries.gain > 0.1
    assert first.retries.new < first.retries.base
    training = first.model.body["training"]
    assert (training["days"], training["held_out_days"]) == ([DAY, DAY + 4], [DAY + 5, DAY + 5])
    assert {"scikit-learn", "numpy"} <= training["versions"].keys()


def test_it_learns_the_truth(first: Learned) -> None:
    profiles = {(p["tool"], p["error"]): p for p in first.model.body["profiles"]}
    assert profiles["search", "timeout"]["wait_ms"] >= 5_000
    assert profiles["search", "timeout"]["wait_rate"] > 0.55
    assert profiles["legacy", "server_error"]["high"] < 0.1
    assert profiles["search", "rate_limit"]["wait_ms"] in (30_000, 60_000)
    assert first.model.evidence["pay"]["server_error"] > 100


def test_the_same_records_again_change_nothing(first: Learned) -> None:
    again = learn(world(), first.model)
    assert not again.better


@table("seed", [5, 6, 7])
def test_more_of_the_same_is_not_promoted_for_noise(first: Learned, seed: int) -> None:
    split = split_of(world().of(Situation))
    other = learn(world(seed=seed)).model
    verdict = verdict_of(split, other.probability, first.model.probability)
    assert verdict is not None
    assert not verdict.better


def test_a_day_with_its_labels_flipped_stays_out(first: Learned, flipped: Flip) -> None:
    made = learn(flipped(world(range(DAY + 4, DAY + 6), seed=9), DAY + 4), first.model)
    assert made.retries is not None
    assert made.retries.gain < 0
    assert not made.better
    assert "not better beyond noise" in made.retries.reason
    assert made.model.weights == first.model.weights, "what is served stays"


# One bad day alone only judges: what was fitted on the good days before it may be served.
@table("bad_days, known", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_newest_days_that_are_bad_together_stay_out(first: Learned, flipped: Flip, bad_days: int, known: bool) -> None:
    days = range(DAY + 6, DAY + 12)
    bad = flipped(world(days, seed=11), *days[-bad_days:])
    assert not learn(bad, first.model if known else None, half_life_days=0.5).better


def test_what_bad_days_agree_on_is_told_to_be_worse_on_the_days_before(first: Learned, flipped: Flip) -> None:
    bad = flipped(world(range(DAY + 6, DAY + 12), seed=11), *range(DAY + 9, DAY + 12))
    made = learn(bad, first.model, half_life_days=0.5)
    assert made.retries is not None
    assert made.retries.gain > 0, "it is better on the newest day, which is as bad as those that it was fitted on"
    assert "of the days before" in made.retries.reason
    forced = learn(bad, first.model, half_life_days=0.5, force=True)
    assert forced.model.weights != first.model.weights


@table("bad_days", [1, 2, 3])
def test_bad_days_after_ten_good_ones_stay_out_where_a_model_is_served(flipped: Flip, bad_days: int) -> None:
    known, days = world(range(DAY, DAY + 10), seed=8), range(DAY + 10, DAY + 10 + bad_days)
    served = learn(known).model
    made = learn(together(known, flipped(world(days, seed=4), *days)), served)
    assert (made.better, made.model.weights) == (False, served.weights)


@table("good, a_day, pause", [(30, 40, 200), (30, 40, 40), (60, 1, 0), (20, 1, 0)])
def test_bad_days_stay_out_after_a_pause_and_after_few_good_ones(
    flipped: Flip, good: int, a_day: int, pause: int
) -> None:
    known, days = world(range(DAY, DAY + good), retries=a_day), range(DAY + good + pause, DAY + good + pause + 2)
    newest = world(days, retries=300, seed=6)
    assert learn(together(known, newest)).better
    assert not learn(together(known, flipped(newest, *days))).better


@table("bad_days", [2, 3])
def test_bad_days_stay_out_in_the_quiet_days_after_them(flipped: Flip, bad_days: int) -> None:
    known, start = world(range(DAY, DAY + 20), retries=20, seed=3), DAY + 20
    days = range(start, start + bad_days)
    bad = flipped(world(days, retries=500, seed=4), *days)
    for quiet in range(1, 5):
        after = world(range(days[-1] + 1, days[-1] + 1 + quiet), retries=10, seed=5)
        assert not learn(together(known, bad, after)).better


@table("a_day, days, rate", [(50, 12, 0.003), (14, 58, 0.01), (14, 58, 0.02)])
def test_retries_that_next_to_never_work_are_learned_too(a_day: int, days: int, rate: float) -> None:
    truth: dict[tuple[str, str], tuple[float, ...]] = {
        ("read", "timeout"): (rate,) * 8,
        ("find", "unavailable"): (rate,) * 8,
    }
    made = [learn(world(range(DAY, DAY + days), a_day, seed=seed, truth=truth)) for seed in (1, 2)]
    assert [one.better for one in made] == [True, True]


def test_a_changed_world_is_followed(first: Learned) -> None:
    # Three days may be bad together.
    for days, followed in ((3, False), (4, True)):
        changed = world(range(DAY + 6, DAY + 6 + days), seed=3, truth={**TRUTH, ("search", "timeout"): (0.02,) * 8})
        assert learn(together(world(), changed), first.model).better is followed


@table("days", [1, 2, 3])
def test_one_day_is_enough_to_begin_with(days: int) -> None:
    assert learn(world(range(DAY, DAY + days), retries=1_500)).better


def test_records_without_times_are_learned_from_and_not_judged() -> None:
    undated = Facts({fact._replace(day=UNDATED): count for fact, count in world(range(DAY, DAY + 1)).items()})
    made = learn(undated)
    assert made.retries is None
    assert not made.better


def test_a_handful_of_retries_replaces_nothing() -> None:
    made = learn(world(range(DAY, DAY + 2), retries=8))
    assert made.retries is not None
    assert "too little to judge by" in made.retries.reason


def test_failures_that_were_never_tried_again_teach_nothing() -> None:
    with pytest.raises(TrainingError, match="was ever repeated"):
        learn(world(retries=20).where(lambda fact: fact.what is None))


def test_a10_the_articles_features_tell_where_they_matter() -> None:
    late = Facts()
    for fact, (n, s) in world(retries=1_500).items():
        what = fact.what
        if isinstance(what, Situation):
            for age, worked in ((0, s), (2, 0.0)):
                late.add(Fact(fact.day, fact.fold, what._replace(age=age)), n, worked)
    model = learn(late).model
    young, old = ([w for key, w in model.weights.items() if f" age {age} " in key] for age in (0, 2))
    assert min(young) > 0.1 > -0.1 > max(old)


def test_a11_corrections_are_judged_by_themselves_and_go_into_the_model_that_is_served(first: Learned) -> None:
    made = learn(together(world(), corrections(rate=0.95)), first.model)
    assert made.corrections is not None
    assert (made.corrections.better, made.better) == (True, True)
    assert made.model.weights == first.model.weights
    assert (made.model.correction("book", "not_found") or 0) > 0.9
    assert (first.model.correction("book", "not_found") or 1) < 0.6


def test_a11_corrections_alone_are_enough_to_learn_from() -> None:
    made = learn(corrections(rate=0.05))
    assert made.better
    assert made.retries is None
    assert made.model.weights == cold_model().weights


def test_bad_days_of_corrections_stay_out(flipped: Flip) -> None:
    good = corrections(range(DAY, DAY + 12), rate=0.95)
    present = learn(good).model
    assert not learn(flipped(good, *range(DAY + 9, DAY + 12)), present, half_life_days=0.5).better


def test_what_came_after_failures_that_arguments_do_not_mend_is_told_and_decides_nothing() -> None:
    facts = together(world(), corrections(rate=0.95, error="auth"))
    made = learn(facts)
    assert made.corrections is None
    assert not any("auth" in of for of in made.model.corrections.values())
    (told,) = [one for one in made.model.body["profiles"] if one["tool"] == "search" and one["error"] == "timeout"]
    assert told["retries"] > 0


def test_facts_of_two_sets_of_sessions_add_up() -> None:
    one, other = world(seed=1, retries=50), world(seed=2, retries=50)
    both = together(one, other)
    assert both.failures == one.failures + other.failures == 600
    assert len(both.days) == 6
    assert not both.of(Correction)


def test_a_tool_whose_name_no_file_can_hold_is_scored_like_a_new_one() -> None:
    odd = Facts()
    for fact, count in world(retries=100).items():
        what = fact.what
        odd.add(replace_tool(fact, "\ud800") if isinstance(what, Situation) and what.tool == "pay" else fact, *count)
    made = learn(odd)
    assert "search" in made.model.tools
    assert "\ud800" not in made.model.tools


def replace_tool(fact: Fact, tool: str) -> Fact:
    assert isinstance(fact.what, Situation)
    return fact._replace(what=fact.what._replace(tool=tool))
