"""
From daily cells to a judged model: promotion, terms, drift.
"""

import math

from collections.abc import Callable
from typing import Any

import pytest

from guardrails.core.retries.context import Settled, action_of, context_of
from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.labels import NO_ACTION
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.model_format import parse
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.candidate import candidate, cold_model, told
from guardrails.offline.learning.drift import drifts
from guardrails.offline.learning.fit import RICH, SEED_TERMS, TERMS
from guardrails.offline.learning.gate import Mean, compare, held_out, judge, quality
from guardrails.offline.learning.learn import Learned, learn
from guardrails.offline.learning.rows.cells import UNDATED, Cell, apart_from, decayed, merged
from guardrails.policy.models import cold_model as shipped_model
from guardrails.policy.models import shipped_spec
from tests.offline.learning.conftest import DAY, SPEC, TRUTH, world
from tests.tables import table


Flip = Callable[[list[Cell], int], list[Cell]]


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return world()


@pytest.fixture(scope="module")
def first(cells: list[Cell]) -> Learned:
    return learn(SPEC, cells)


def trained_on(cells: list[Cell]) -> RetryModel:
    return candidate(SPEC, decayed(cells, max(cell.day for cell in cells)), TERMS).model


def test_the_shipped_model_is_what_the_beliefs_give() -> None:
    made, shipped = cold_model(shipped_spec()).model, shipped_model()
    assert shipped.spec == shipped_spec()
    assert made.intercept == pytest.approx(shipped.intercept, abs=1e-4)
    for one, other in zip(made.terms, shipped.terms, strict=True):
        assert one.on == other.on
        assert dict(one.weights) == pytest.approx(dict(other.weights), abs=1e-4)


def test_the_same_cells_give_the_same_file(cells: list[Cell], first: Learned) -> None:
    again = learn(SPEC, cells[::-1])
    assert again.new.text == first.new.text


def test_a_first_model_replaces_the_shipped_one_where_it_is_better(first: Learned) -> None:
    assert first.better
    assert first.verdict is not None
    assert first.verdict.gain.value > 0.1
    assert first.day == DAY + 5
    training = first.new.model.body["training"]
    assert training["days"] == [DAY, DAY + 4]
    assert training["held_out_day"] == DAY + 5
    assert training["metrics"]["new"]["log_loss"] < training["metrics"]["replaced"]["log_loss"]
    assert {"scikit-learn", "numpy"} <= training["versions"].keys()
    assert len(first.new.model.body["golden"]) == 12


def test_it_learns_the_truth(first: Learned) -> None:
    profiles = {(p["tool"], p["error"]): p for p in first.new.model.body["profiles"]}
    assert profiles["search", "timeout"]["wait_ms"] >= 5_000
    assert profiles["search", "timeout"]["wait_rate"] > 0.55
    assert profiles["legacy", "server_error"]["high"] < 0.1
    assert profiles["search", "rate_limit"]["wait_ms"] == 60_000


def test_the_same_records_again_change_nothing(cells: list[Cell], first: Learned) -> None:
    again = learn(SPEC, cells, first.new.model)
    assert again.unchanged
    assert not again.better


def test_more_of_the_same_is_not_promoted_for_noise(cells: list[Cell], first: Learned) -> None:
    verdicts = [
        compare(trained_on(world(seed=seed)), first.new.model, [c for c in cells if c.day == DAY + 5])
        for seed in (5, 6, 7)
    ]
    assert not any(verdict.better for verdict in verdicts)


def test_a_day_with_its_labels_flipped_stays_out(first: Learned, flipped: Flip) -> None:
    bad = flipped(world(range(DAY + 4, DAY + 6), seed=9), DAY + 4)
    made = learn(SPEC, bad, first.new.model)
    assert made.verdict is not None
    assert made.verdict.gain.value < 0
    assert not made.better
    assert "not better beyond noise" in made.verdict.reason


# One bad day alone only judges: what was fitted on the good days before it may be served.
@table("bad_days, known", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_newest_days_that_are_bad_together_stay_out(first: Learned, flipped: Flip, bad_days: int, known: bool) -> None:
    days = range(DAY + 6, DAY + 12)
    bad = world(days, seed=11)
    for day in days[-bad_days:]:
        bad = flipped(bad, day)
    made = learn(SPEC, bad, first.new.model if known else None, half_life_days=0.5)
    assert not made.better


def test_what_bad_days_agree_on_is_told_to_be_worse_than_the_base_rate(first: Learned, flipped: Flip) -> None:
    bad = world(range(DAY + 6, DAY + 12), seed=11)
    for day in range(DAY + 9, DAY + 12):
        bad = flipped(bad, day)
    made = learn(SPEC, bad, first.new.model, half_life_days=0.5)
    assert made.verdict is not None
    assert made.verdict.gain.value > 0, "it is better on the newest day, which is as bad as those that it was fitted on"
    assert "worse than the base rate" in made.verdict.reason


@table("good, a_day, pause", [(30, 40, 200), (30, 40, 40), (60, 1, 0), (20, 1, 0)])
def test_bad_days_stay_out_after_a_pause_and_after_few_good_ones(
    flipped: Flip, good: int, a_day: int, pause: int
) -> None:
    known, days = world(range(DAY, DAY + good), retries=a_day), range(DAY + good + pause, DAY + good + pause + 2)
    newest = world(days, retries=100, seed=5)
    assert learn(SPEC, [*known, *newest]).better
    bad = flipped(flipped(newest, days[0]), days[1])
    assert not learn(SPEC, [*known, *bad]).better


@table("bad_days", [2, 3])
def test_bad_days_stay_out_in_the_quiet_days_after_them(flipped: Flip, bad_days: int) -> None:
    known, first = world(range(DAY, DAY + 20), retries=20, seed=3), DAY + 20
    bad = world(range(first, first + bad_days), retries=500, seed=4)
    for day in range(first, first + bad_days):
        bad = flipped(bad, day)
    for quiet in range(1, 5):
        after = world(range(first + bad_days, first + bad_days + quiet), retries=10, seed=5)
        newest = apart_from(first + bad_days + quiet - 1)
        night = [*known, *bad, *after]
        made = learn(SPEC, merged(cell if cell.day >= newest else cell._replace(fold=UNDATED) for cell in night))
        assert not made.better


@table("a_day, days, rate", [(50, 12, 0.003), (14, 58, 0.01), (14, 58, 0.02)])
def test_retries_that_next_to_never_work_are_learned_too(a_day: int, days: int, rate: float) -> None:
    truth: dict[tuple[str, str], tuple[float, ...]] = {
        ("read", "timeout"): (rate,) * 6,
        ("find", "unavailable"): (rate,) * 6,
    }
    made = [learn(SPEC, world(range(DAY, DAY + days), a_day, seed=seed, truth=truth)) for seed in (1, 2)]
    assert [one.better for one in made] == [True, True]


def test_who_forces_a_model_gets_all_of_it(flipped: Flip, first: Learned) -> None:
    bad = world(range(DAY + 6, DAY + 12), seed=11)
    for day in range(DAY + 9, DAY + 12):
        bad = flipped(bad, day)
    corrected = [cell._replace(error_type="not_found", n=0.0, s=0.0, unlabelled=cell.n) for cell in world(seed=2)]
    mended = [
        cell._replace(action=NO_ACTION, corrected_n=cell.unlabelled, corrected=cell.unlabelled) for cell in corrected
    ]
    cells = merged([*bad, *(cell._replace(day=cell.day + 6) for cell in mended)])
    refused = learn(SPEC, cells, first.new.model, half_life_days=0.5)
    assert refused.better
    assert refused.grafted
    assert not learn(SPEC, cells, first.new.model, half_life_days=0.5, force=True).grafted


def test_a_changed_world_is_followed_and_told_of(first: Learned) -> None:
    changed = {**TRUTH, ("search", "timeout"): (0.02,) * 6}
    later = world(range(DAY + 6, DAY + 9), seed=3, truth=changed)
    made = learn(SPEC, [*world(newest=DAY + 8), *later], first.new.model, half_life_days=2)
    assert made.better
    assert [(drift.tool, drift.error) for drift in made.drifts] == [("search", "timeout")]
    assert made.drifts[0].z < -5
    assert "`search` after `timeout`" in made.drifts[0].sentence()


def test_a_world_that_stays_raises_no_alarm(cells: list[Cell], first: Learned) -> None:
    assert drifts(first.new.model, world(range(DAY + 6, DAY + 7), seed=4)) == []


def test_what_is_not_known_of_a_gain_is_null_for_other_programs() -> None:
    assert Mean(0.1, math.inf).document() == {"value": 0.1, "error": None}


def test_a_gain_must_exceed_its_noise() -> None:
    assert Mean(0.02, 0.009).sure
    assert not Mean(0.02, 0.011).sure
    assert not Mean(0.0, 0.0).sure
    assert not Mean(-1.0, 0.1).sure


def test_the_figures_are_those_of_the_definitions(first: Learned, cells: list[Cell]) -> None:
    import numpy as np

    held = [cell for cell in cells if cell.day == DAY + 5]
    columns = held_out(first.new.model, held)
    judged = judge(first.new.model, columns, Stakes())
    found = quality(columns, judged)
    p = [first.new.model.probability(c.tool, c.error_type, c.context, c.action) for c in sorted(held)]
    assert judged.p.tolist() == pytest.approx(p, abs=1e-12)
    n, s = columns.n, columns.s
    loss = -(s * np.log(p) + (n - s) * np.log(1 - np.array(p))).sum() / n.sum()
    assert found.log_loss == pytest.approx(loss)
    assert found.rate == pytest.approx(s.sum() / n.sum())
    assert 0 <= found.calibration_error < 0.1
    # Retrying what pays is worth more than retrying all, which is worth the rate less the costs.
    assert found.value > float((s - 0.1 * n).sum() / n.sum()) - 0.2


def test_a_model_of_other_features_is_compared_with_the_shipped_one(cells: list[Cell], first: Learned) -> None:
    other = parse(told(first.new, {}).text)
    document = {**SPEC.document(), "lookback": 7}
    object.__setattr__(other, "spec", type(SPEC).parse(document))
    made = learn(SPEC, cells, other)
    assert made.present is None
    assert "has other features" in made.notes[0]


def test_other_factors_are_admitted_only_where_they_pay(first: Learned) -> None:
    assert "seed" not in first.chosen
    assert first.new.model.body["training"]["chosen_terms"] == first.chosen


def test_interactions_are_usual_and_go_where_they_lose(first: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
    assert first.chosen.keys() == {"rich"}
    assert set(RICH) & {term.on for term in first.new.model.terms}
    # Each context of each tool by itself knows the past by heart and says nothing of a day whose contexts mean otherwise.
    every = ("tool", "error", "attempt", "err_run", "fail_share", "ra", "delay")
    monkeypatch.setattr("guardrails.offline.learning.learn.RICH", ((*every, "elapsed"), (*every, "prev"), every))
    monkeypatch.setattr("guardrails.offline.learning.candidate.SPREADS", (1.0, 1.0, 20.0))
    made = learn(SPEC, world(retries=1_500))
    assert made.chosen == {}
    assert every not in {term.on for term in made.new.model.terms}


def test_a_day_that_has_just_begun_leaves_one_to_judge_and_one_to_choose_terms_by() -> None:
    begun = world(range(DAY + 6, DAY + 7), retries=9)
    made = learn(SPEC, [*world(range(DAY, DAY + 6), newest=DAY + 6), *begun])
    assert (made.first_day, made.day) == (DAY + 5, DAY + 6)
    assert made.chosen.keys() == {"rich"}


def test_few_retries_know_no_interactions() -> None:
    made = learn(SPEC, world(retries=100))
    assert not set(RICH) & {term.on for term in made.new.model.terms}


def test_a10_the_seeds_features_get_in_where_they_tell_something() -> None:
    elapsed = SPEC.by_name["elapsed"]
    late = []
    for cell in world(retries=1_500):
        if int(cell.n) % 2:
            code = cell.context + elapsed.stride * (elapsed.radix - 1 - cell.context // elapsed.stride % elapsed.radix)
            late.append(cell._replace(context=code, s=0))
        else:
            late.append(cell)
    made = learn(SPEC, late)
    assert made.chosen["seed"] > 0
    assert ("elapsed",) in {term.on for term in made.new.model.terms}
    assert set(SEED_TERMS) == {("tool_run",), ("elapsed",), ("prev",)}


@table("days", [1, 2, 3])
def test_one_day_is_enough_to_begin_with(days: int) -> None:
    made = learn(SPEC, world(range(DAY, DAY + days), retries=1_500))
    assert made.better
    assert bool(made.notes) is (days == 1)


def test_a_day_without_labels_is_not_judged_by() -> None:
    bare = [cell._replace(day=DAY + 6, action=NO_ACTION, source="", unlabelled=cell.n, n=0, s=0) for cell in world()]
    made = learn(SPEC, [*world(newest=DAY + 6), *bare])
    assert made.day == DAY + 5
    assert made.better


def test_records_without_times_are_learned_from_and_not_judged() -> None:
    undated = [cell._replace(day=UNDATED, fold=UNDATED) for cell in world()]
    made = learn(SPEC, undated)
    assert made.verdict is None
    assert not made.better
    assert made.notes == ["the records have no times: there is nothing to judge a model by"]


def test_a_handful_of_retries_replaces_nothing() -> None:
    made = learn(SPEC, world(range(DAY, DAY + 2), retries=8))
    assert made.verdict is not None
    assert "too little to judge by" in made.verdict.reason


@table(
    "change, said",
    [
        (lambda cells: [], "there are no failed calls"),
        (lambda cells: [c._replace(n=0, s=0, action=NO_ACTION) for c in cells], "was ever repeated"),
        (lambda cells: [c._replace(s=c.n) for c in cells], "worked: both outcomes are needed"),
    ],
)
def test_what_teaches_nothing_says_so(change: Any, said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        learn(SPEC, change(world(retries=20)))


def test_a_longer_wait_than_any_advised_is_not_free() -> None:
    spec = shipped_spec()
    context = context_of(spec, [], Settled("a", 1, "timeout", 0), 0, None)
    cells = [
        Cell(
            0,
            0,
            "a",
            "timeout",
            context.code,
            action_of(spec, context, delay, between=False),
            "agent",
            9,
            9,
            0,
            0,
            0,
            0,
            0,
        )
        for delay in (200, 700, 10_000, 120_000, 290_000)
    ]
    sure = candidate(spec, [*cells, cells[0]._replace(tool="b", s=0)]).model
    held = held_out(sure, cells)
    assert (judge(sure, held, Stakes()).value / held.n).tolist() == pytest.approx([0.9, 0.899, 0.88, 0.66, 0.6])
