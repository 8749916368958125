"""
Self-correction: counted with the retries, judged by itself, served only if it does no worse than one rate for all.
"""

import random

from typing import Any

import pytest

from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.candidate import candidate, cold_model, grafted
from guardrails.offline.learning.corrections import corrections_of
from guardrails.offline.learning.labels import NO_ACTION
from guardrails.offline.learning.learn import learn
from guardrails.offline.learning.rows.cells import FOLDS, UNDATED, Cell, decayed
from tests.offline.learning.conftest import DAY, SPEC, world
from tests.tables import table


SHARES = {("book", "not_found"): 0.85, ("pay", "not_found"): 0.1, ("book", "validation_error"): 0.9}


def cell(tool: str, error: str, n: float, s: float, **more: Any) -> Cell:
    made = Cell(
        DAY,
        0,
        tool,
        error,
        0,
        NO_ACTION,
        "",
        n=0.0,
        s=0.0,
        unlabelled=n,
        corrected_n=n,
        corrected=s,
        logged=0.0,
        skewed=0.0,
    )
    return made._replace(**more)


def days(shares: dict[tuple[str, str], float] = SHARES, *, last: int = 10, calls: int = 8, seed: int = 1) -> list[Cell]:
    """
    Failures of *last* days without a single retry; the newest day knows the groups of its sessions.
    """
    rng = random.Random(seed)
    made = []
    for back in range(last):
        for (tool, error), share in shares.items():
            for fold in range(FOLDS):
                worked = sum(rng.random() < share for _ in range(calls))
                made.append(cell(tool, error, calls, worked, day=DAY - back, fold=fold if back < 3 else UNDATED))
    return made


def flipped(cells: list[Cell], newest: int) -> list[Cell]:
    return [one._replace(corrected=one.corrected_n - one.corrected) if one.day > DAY - newest else one for one in cells]


def test_what_is_corrected_is_learned_without_a_single_retry() -> None:
    made = learn(SPEC, days())
    assert made.better
    assert made.verdict is None
    assert made.corrected is not None
    assert made.corrected.new < made.corrected.base
    model = made.new.model
    assert model.correction("book", "not_found") == pytest.approx(0.85, abs=0.06)
    assert model.correction("pay", "not_found") == pytest.approx(0.1, abs=0.06)
    assert model.correction("book", "validation_error") == pytest.approx(0.9, abs=0.06)
    assert model.terms == cold_model(SPEC).model.terms


def test_the_profiles_tell_what_is_served() -> None:
    made = learn(SPEC, days()).new.model
    told = {(one["tool"], one["error"]): one for one in made.body["profiles"]}
    for key, one in told.items():
        assert one["corrected"] == list(made.corrections.counts[key])
        assert one["correction"] == pytest.approx(made.correction(*key), abs=1e-6)


def test_corrections_alone_replace_a_model_and_leave_what_it_says_of_retries() -> None:
    retries = learn(SPEC, world())
    both = [*world(), *days()]
    made = learn(SPEC, both, retries.new.model)
    assert made.better
    assert made.corrected is not None
    assert made.corrected.better
    again = learn(SPEC, both, made.new.model)
    assert not again.better


@table("newest", [1, 2, 3])
@table("calls", [8, 30])
@table("known", [True, False])
def test_newest_days_that_are_bad_together_do_not_get_in(newest: int, calls: int, *, known: bool) -> None:
    good = learn(SPEC, days()).new.model if known else None
    bad = [one._replace(day=one.day + newest) for one in flipped(days(last=newest, calls=calls, seed=2), 99)]
    made = learn(SPEC, [*days(), *bad], good)
    assert not made.better or (made.new.model.correction("pay", "not_found") or 1) < 0.3


def test_what_is_never_served_has_no_say_in_what_is() -> None:
    # Outages pass in one night: what came after them says nothing of names that are not there.
    outages = [
        cell(f"read_{fold}", "timeout", 9, 9.0 if back < 2 else 1.0, day=DAY - back, fold=fold if back < 3 else UNDATED)
        for back in range(10)
        for fold in range(FOLDS)
    ]
    alone, beside = learn(SPEC, days()), learn(SPEC, [*days(), *outages])
    assert alone.corrected is not None
    assert beside.corrected == alone.corrected
    assert beside.new.model.corrections.rate("book", "not_found") == alone.new.model.corrections.rate(
        "book", "not_found"
    )
    assert beside.new.model.corrections.seen("read_1", "timeout") > 0


def test_calls_that_are_never_served_teach_nothing() -> None:
    with pytest.raises(TrainingError, match="no failed call was ever repeated"):
        learn(SPEC, days({("read", "timeout"): 0.5}))


def test_a_tool_that_was_never_retried_keeps_its_corrections_beside_others_that_were() -> None:
    made = candidate(SPEC, decayed([*world(), *days()], DAY)).model
    assert made.corrections.seen("pay", "not_found") > 100
    assert (made.correction("pay", "not_found") or 1) < 0.2


def test_a_failure_after_failures_of_its_kind_is_corrected_less() -> None:
    stride = SPEC.by_name["err_run"].stride
    cells = [
        cell("book", "not_found", 100, 80),
        cell("book", "not_found", 100, 30, context=stride),
        cell("book", "not_found", 100, 5, context=2 * stride),
    ]
    made = grafted(cold_model(SPEC).model, corrections_of(SPEC, cells), SPEC, cells).model
    said = [made.correction("book", "not_found", run * stride) or 0.0 for run in range(3)]
    assert said == sorted(said, reverse=True)
    assert said[0] > 0.7
    assert said[2] < 0.15
