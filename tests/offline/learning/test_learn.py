"""
From facts to a judged model: what is promoted, and what never is.
"""

from pathlib import Path

import pytest
import yaml

from guardrails.core.retries.model import parse
from guardrails.core.retries.trail import Situation
from guardrails.core.values.errors import TrainingError
from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.learning.beliefs import ALONE, BELIEFS, RETRIES, believed, believed_corrections
from guardrails.offline.learning.facts import UNDATED, Facts
from guardrails.offline.learning.train import Learned, learn, shipped_text
from guardrails.policy.models import cold_model
from tests.offline.learning.worlds import DAY, TRUTH, Truth, corrections, days, flipped, together, world
from tests.tables import table


BAD_DAYS = yaml.safe_load(Path(__file__).with_name("bad_days.yaml").read_text(encoding="utf-8"))


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


def test_a_first_model_learns_the_truth_and_replaces_the_shipped_one(first: Learned) -> None:
    assert first.better
    assert first.retries is not None
    assert first.retries.gain > 0.1
    training = first.model.body["training"]
    assert (training["days"], training["held_out_days"]) == ([DAY, DAY + 4], [DAY + 5, DAY + 5])
    assert {"scikit-learn", "numpy"} <= training["versions"].keys()
    profiles = {(p["tool"], p["error"]): p for p in first.model.body["profiles"]}
    assert profiles["search", "timeout"]["wait_ms"] >= 5_000
    assert profiles["search", "timeout"]["wait_rate"] > 0.55
    assert profiles["legacy", "server_error"]["high"] < 0.1
    assert profiles["search", "rate_limit"]["wait_ms"] in (30_000, 60_000)
    assert first.model.evidence["pay"]["server_error"] > 100
    # The same facts in another order give the same bytes, and again change nothing.
    assert learn(Facts(dict(reversed(world().items())))).text == first.text
    assert not learn(world(), first.model).better


def test_more_of_the_same_is_not_promoted_for_noise(first: Learned) -> None:
    for seed in (5, 6, 7):
        made = learn(together(world(), world(days(3, after=6), seed=seed)), first.model)
        assert made.retries is not None
        assert not made.better
        assert "not better beyond noise" in made.retries.reason


@table("good, a_day, pause, bad, retries, quiet, served, half_life_days", BAD_DAYS)
def test_bad_days_stay_out_and_what_is_served_stays(
    good: int, a_day: int, pause: int, bad: int, retries: int, quiet: int, served: bool, half_life_days: float
) -> None:
    known, newest = world(days(good), a_day, seed=8), days(bad, after=good + pause)
    later = world(days(quiet, after=good + pause + bad), 10, seed=5)
    facts = together(known, flipped(world(newest, retries, seed=4), newest), later)
    model = learn(known).model if served else None
    made = learn(facts, model, half_life_days=half_life_days)
    assert not made.better
    assert model is None or made.model.weights == model.weights


def test_what_bad_days_agree_on_is_told_to_be_worse_on_the_days_before(first: Learned) -> None:
    bad = flipped(world(days(6, after=6), seed=11), days(3, after=9))
    made, forced = (learn(bad, first.model, half_life_days=0.5, force=force) for force in (False, True))
    assert made.retries is not None
    assert made.retries.gain > 0, "it is better on the newest day, which is as bad as those that it was fitted on"
    assert "of the days before" in made.retries.reason
    assert forced.model.weights != first.model.weights == made.model.weights


RARE: Truth = {("read", "timeout"): (0.01,) * 8, ("find", "unavailable"): (0.01,) * 8}


@table(
    "facts",
    [
        *(world(days(count), 1_500) for count in (1, 2, 3)),
        *(world(days(58), 14, seed=seed, truth=RARE) for seed in (1, 2)),
        together(world(days(30), 40), world(days(2, after=70), 300, seed=6)),
    ],
)
def test_one_day_rare_successes_and_a_pause_are_learned_from(facts: Facts) -> None:
    assert learn(facts).better


def test_a_changed_world_is_followed(first: Learned) -> None:
    # Three days may be bad together.
    for count, followed in ((3, False), (4, True)):
        changed = world(days(count, after=6), seed=3, truth={**TRUTH, ("search", "timeout"): (0.02,) * 8})
        assert learn(together(world(), changed), first.model).better is followed


def test_what_cannot_be_judged_replaces_nothing() -> None:
    undated = learn(Facts({fact._replace(day=UNDATED): count for fact, count in world(days(1)).items()}))
    assert (undated.retries, undated.better) == (None, False)
    few = learn(world(days(2), retries=8))
    assert few.retries is not None
    assert "too little to judge by" in few.retries.reason
    with pytest.raises(TrainingError, match="was ever repeated"):
        learn(world(retries=20).where(lambda fact: fact.what is None))


def test_a10_the_articles_features_tell_where_they_matter() -> None:
    late = Facts()
    for fact, (n, s) in world(retries=1_500).items():
        what = fact.what
        if isinstance(what, Situation):
            for age, worked in ((0, s), (2, 0.0)):
                late.add(fact._replace(what=what._replace(age=age)), n, worked)
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
    alone = learn(corrections(rate=0.05))
    assert (alone.better, alone.retries, alone.model.weights) == (True, None, cold_model().weights)
    good = corrections(days(12), rate=0.95)
    assert not learn(flipped(good, days(3, after=9)), learn(good).model, half_life_days=0.5).better


def test_what_came_after_failures_that_arguments_do_not_mend_decides_nothing() -> None:
    made = learn(together(world(), corrections(rate=0.95, error="auth")))
    assert made.corrections is None
    assert not any("auth" in of for of in made.model.corrections.values())


def test_a_tool_whose_name_no_file_can_hold_is_scored_like_a_new_one() -> None:
    truth = {("\ud800" if tool == "pay" else tool, error): rates for (tool, error), rates in TRUTH.items()}
    made = learn(world(retries=100, truth=truth))
    assert "search" in made.model.tools
    assert "\ud800" not in made.model.tools
