"""
An exact regression on cells.
"""

import math

from collections.abc import Sequence

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.retries.model import action_levels, levels_of
from guardrails.core.retries.scoring import Scorer, probability
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.design import columns_of, design, logits
from guardrails.offline.learning.fit import MAX_TOOLS, RICH, SEED_TERMS, SPREADS, TERMS, fit, known_tools
from guardrails.offline.learning.labels import NO_ACTION
from guardrails.offline.learning.rows.cells import Cell, decayed, merged
from tests.offline.learning.conftest import SPEC, world
from tests.tables import table


ACTING = frozenset(factor.name for factor in SPEC.action)


def rows_of(cells: Sequence[Cell]) -> list[Cell]:
    """
    One cell for each failure.
    """
    return [
        cell._replace(n=1, s=float(i < cell.s), fold=i)
        for cell in cells
        for i in range(int(cell.n))
        if cell.action != NO_ACTION
    ]


def test_a10_cells_give_the_coefficients_of_their_rows() -> None:
    cells = world(retries=300)
    one, other = fit(columns_of(SPEC, cells), TERMS), fit(columns_of(SPEC, rows_of(cells)), TERMS)
    assert one.intercept == pytest.approx(other.intercept, abs=2e-6)
    for a, b in zip(one.terms, other.terms, strict=True):
        assert a.on == b.on
        assert dict(a.weights) == pytest.approx(dict(b.weights), abs=2e-6)


def test_the_order_of_cells_and_how_they_were_counted_change_nothing() -> None:
    cells = world(retries=300)
    halves = [cell._replace(n=cell.n / 2, s=cell.s / 2) for cell in cells]
    same = [fit(columns_of(SPEC, given), TERMS) for given in (cells, cells[::-1], merged([*halves, *halves]))]
    assert same[0] == same[1] == same[2]


def test_scoring_equals_scikit_learn_holding_the_stored_coefficients() -> None:
    from sklearn.linear_model import LogisticRegression

    cells = world(retries=300)
    columns = columns_of(SPEC, cells)
    fitted = fit(columns, (*TERMS, *SEED_TERMS, *RICH))
    places, matrix = design(columns, [term.on for term in fitted.terms])
    held = LogisticRegression()
    held.classes_ = np.array([0, 1])
    held.intercept_ = np.array([fitted.intercept])
    held.coef_ = np.array([[fitted.terms[term].weights.get(key, 0.0) for term, key in places]])
    expected = held.predict_proba(matrix)[:, 1]
    scorer = Scorer(fitted.intercept, fitted.terms, ACTING)
    labelled = [cell for cell in sorted(cells) if cell.action != NO_ACTION]
    for cell, p in zip(labelled, expected, strict=True):
        levels = levels_of(SPEC, cell.tool, cell.error_type, cell.context, cell.source)
        levels.update(action_levels(SPEC, cell.action))
        assert math.isclose(probability(scorer.logit(levels)), p, rel_tol=0, abs_tol=1e-12)
    assert np.allclose(logits(columns, fitted.intercept, fitted.terms), held.decision_function(matrix), atol=1e-12)


def test_the_optimum_is_found_whichever_solver_the_size_calls_for() -> None:
    columns = columns_of(SPEC, world(retries=1_000))
    small, large = fit(columns, TERMS), fit(columns, (*TERMS, *SEED_TERMS, *RICH))
    assert (small.solver, large.solver) == ("newton-cholesky", "newton-cg") or large.coefficients <= 1_000
    for fitted in (small, large):
        logit = logits(columns, fitted.intercept, fitted.terms)
        residual = columns.s - columns.n / (1 + np.exp(-logit))
        # At the optimum the unpenalised intercept leaves no residual, and each weight is its own residual (C = 1).
        assert abs(residual.sum()) < 0.05
        places, matrix = design(columns, [term.on for term in fitted.terms])
        weights = np.array([fitted.terms[term].weights.get(key, 0.0) for term, key in places])
        assert np.abs(matrix.T @ residual - weights).max() < 0.05


def test_finer_terms_are_believed_to_weigh_less() -> None:
    columns = columns_of(SPEC, world(retries=1_000))
    fitted = fit(columns, (*TERMS, *RICH), SPREADS)
    logit = logits(columns, fitted.intercept, fitted.terms)
    residual = columns.s - columns.n / (1 + np.exp(-logit))
    places, matrix = design(columns, [term.on for term in fitted.terms])
    weights = np.array([fitted.terms[term].weights.get(key, 0.0) for term, key in places])
    spread = np.array([SPREADS[len(fitted.terms[term].on) - 1] for term, _ in places])
    # At the optimum each weight is its residual times the variance that it is believed to have.
    assert np.abs(matrix.T @ residual * spread**2 - weights).max() < 0.05


@settings(max_examples=15)
@given(st.lists(st.tuples(st.text(max_size=6), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_tools_of_any_name_are_fitted(tools: list[tuple[str, int, int]]) -> None:
    counted = [Cell(0, 0, tool, "timeout", 5, 43, "agent", n + s, s, 0, 0, 0, 0, 0) for tool, n, s in tools]
    try:
        fitted = fit(columns_of(SPEC, merged(counted)), TERMS)
    except TrainingError:
        n, s = sum(cell.n for cell in counted), sum(cell.s for cell in counted)
        assert n == 0 or s in (0, n)
        return
    names = {cell.tool for cell in counted}
    for term in fitted.terms:
        if term.on == ("tool",):
            assert set(term.weights) <= names


@table(
    "cells, said",
    [
        ([], "no failed call was ever repeated"),
        ([Cell(0, 0, "a", "timeout", 0, NO_ACTION, "", 0, 0, 9, 0, 0, 0, 0)], "no failed call was ever repeated"),
        ([Cell(0, 0, "a", "timeout", 0, 0, "agent", 9, 9, 0, 0, 0, 0, 0)], "all 9 retries in these records worked"),
        ([Cell(0, 0, "a", "timeout", 0, 0, "agent", 9, 0, 0, 0, 0, 0, 0)], "all 9 retries in these records failed"),
    ],
)
def test_what_cannot_be_learned_from_says_so(cells: list[Cell], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        fit(columns_of(SPEC, cells), TERMS)


def test_tools_beyond_the_most_used_are_scored_like_new_ones() -> None:
    counted = [
        Cell(0, 0, f"t{i}", "timeout", 0, 43, "agent", 1 + i % 7, i % 2, 0, 0, 0, 0, 0) for i in range(MAX_TOOLS + 500)
    ]
    tools = known_tools(counted)
    assert len(tools) == MAX_TOOLS
    assert {cell.tool for cell in counted if cell.n > 2} <= tools
    columns = columns_of(SPEC, counted, tools=tools)
    assert (columns.levels["tool"] < 0).sum() == 500


def test_newer_days_weigh_more() -> None:
    old = [cell._replace(s=0) for cell in world(range(100, 101))]
    new = [cell._replace(day=110, s=cell.n) for cell in world(range(100, 101), seed=2)]
    rate = [
        sum(cell.s for cell in made) / sum(cell.n for cell in made)
        for made in (decayed([*old, *new], 110, 2.0), decayed([*old, *new], 110, 1e9))
    ]
    assert rate[0] > 0.9
    assert rate[1] == pytest.approx(0.5, abs=0.01)
