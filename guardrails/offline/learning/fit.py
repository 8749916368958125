"""
A weighted logistic regression on counts of situations, and its coefficients by name.

Counts stand for the retries they count: fitted on either, the coefficients are the same. The same counts always give the
same model: their order, the solver and its one thread are fixed, and the coefficients rounded.
"""

import warnings

from collections.abc import Iterable, Mapping
from typing import Final

from guardrails.core.retries.model import ANY, MAX_WEIGHT, keys
from guardrails.core.retries.shrinkage import Count
from guardrails.core.retries.trail import Situation
from guardrails.core.values.errors import TrainingError, needs

from .beliefs import ALONE, RETRIES, believed


DECIMALS: Final = 5
"""Of a stored coefficient: 1e-5 of log odds changes no probability by more than 3e-6."""
FEW: Final = 1_000
"""Up to so many coefficients the Hessian is small enough to be factorised (newton-cholesky)."""
INVERSE_PENALTY: Final = 1.0
"""`C`, of a weight whose standard deviation is believed to be 1."""
MAX_TOOLS: Final = 1_000
"""Tools with weights of their own, those with the most retries; all others are scored like tools never seen."""
LONGEST: Final = 200
"""Characters of the name of such a tool, so that a file keeps within its size."""

Fitted = tuple[float, dict[str, float], dict[str, dict[str, float]]]
"""Intercept, weights that all tools share, weights of each tool's own."""


def fit(counts: Iterable[tuple[Situation, Count]], tools: frozenset[str]) -> Fitted:
    """
    Fit *counts* and the shipped beliefs; only *tools* get weights of their own. L2 penalty, the intercept unpenalised.

    Raises TrainingError for weights that no sound records lead to.
    """
    with needs("train", "training"):
        import numpy as np

        from scipy.sparse import csr_matrix
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

    rows = sorted((situation, count) for situation, count in counts if count.n > 0)
    rows += believed(RETRIES if rows else ALONE)
    places: dict[tuple[str, str], int] = {}
    spreads: list[float] = []
    columns: list[int] = []
    ends = [0]
    for situation, _ in rows:
        shared, own = keys(situation)
        for tool, crosses in ((ANY, shared), (situation.tool, own if situation.tool in tools else ())):
            for key, spread in crosses:
                column = places.setdefault((tool, key), len(places))
                if column == len(spreads):
                    spreads.append(spread)
                columns.append(column)
        ends.append(len(columns))
    # A column of smaller numbers needs a larger coefficient for the same weight, and so is penalised more.
    scale = np.array(spreads)
    matrix = csr_matrix((scale[columns], columns, ends), shape=(len(rows), len(places)))
    n, s = (np.array([count[at] for _, count in rows]) for at in (0, 1))
    # One row for the successes of a situation and one for its failures.
    good, bad = np.flatnonzero(s > 0), np.flatnonzero(n > s)
    taken = np.concatenate([good, bad])
    worked = np.concatenate([np.ones(len(good)), np.zeros(len(bad))])
    weights = np.concatenate([s[good], (n - s)[bad]])
    solver, tolerance = ("newton-cholesky", 1e-8) if len(places) <= FEW else ("newton-cg", 1e-6)
    regression = LogisticRegression(C=INVERSE_PENALTY, solver=solver, tol=tolerance, max_iter=200)
    # Threads add in no fixed order.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("error")
        regression.fit(matrix[taken], worked, sample_weight=weights)
    made: dict[str, dict[str, float]] = {}
    for (tool, key), value in zip(places, (regression.coef_[0] * scale).tolist(), strict=True):
        rounded = round(value, DECIMALS)
        if abs(rounded) >= MAX_WEIGHT:
            raise TrainingError(f"the weight of `{key}` is {rounded:g}, beyond {MAX_WEIGHT:g}: the records are no good")
        if rounded:
            made.setdefault(tool, {})[key] = rounded
    return round(float(regression.intercept_[0]), DECIMALS), made.pop(ANY, {}), made


def known_tools(retries: Mapping[str, float]) -> frozenset[str]:
    """
    Returns the tools with the most *retries*; ties by name. A name that no file can hold is none of them.
    """
    named = [tool for tool in retries if tool and len(tool) <= LONGEST and tool.isprintable()]
    return frozenset(sorted(named, key=lambda tool: (-retries[tool], tool))[:MAX_TOOLS])
