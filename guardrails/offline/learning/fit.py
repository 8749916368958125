"""
A weighted logistic regression on counts of situations, and its coefficients by name.

Counts stand for the events they count: fitted on either, the coefficients are the same. The same counts always give the
same model: their order, the solver and its one thread are fixed, and the coefficients rounded.
"""

import warnings

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from guardrails.core.retries.model import ANY, MAX_WEIGHT, Count, Crossed
from guardrails.core.values.errors import TrainingError, needs


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


def fit(counts: Mapping[Any, Count], tools: frozenset[str], beliefs: Iterable[tuple[Crossed, Count]]) -> dict[str, Any]:
    """
    Fit *counts* of situations, and *beliefs* of the same form; only *tools* get weights of their own. L2 penalty, the intercept
    unpenalised. Returns `intercept`, the `weights` that all tools share, and by tool those of its own (`tools`).

    Raises TrainingError for weights that no sound records lead to.
    """
    with needs("train", "training"):
        import numpy as np

        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

    rows = [*sorted((at, count) for at, count in counts.items() if count.n > 0), *beliefs]
    columns = DictVectorizer()
    matrix = columns.fit_transform([_columns(at, tools) for at, _ in rows])
    # A column of smaller numbers needs a larger coefficient for the same weight, and so is penalised more.
    scale = matrix.max(axis=0).toarray()[0]
    n, s = (np.array([count[part] for _, count in rows]) for part in (0, 1))
    # One row for the successes of a situation and one for its failures.
    solver, tolerance = ("newton-cholesky", 1e-8) if len(scale) <= FEW else ("newton-cg", 1e-6)
    regression = LogisticRegression(C=INVERSE_PENALTY, solver=solver, tol=tolerance, max_iter=200)
    good, bad = np.flatnonzero(s > 0), np.flatnonzero(n > s)
    if not len(good) or not len(bad):
        raise TrainingError("every call of the records ended alike: there is nothing to tell apart")
    worked, weights = np.repeat([1, 0], [len(good), len(bad)]), np.concatenate([s[good], (n - s)[bad]])
    # Threads add in no fixed order.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("error")
        regression.fit(matrix[np.concatenate([good, bad])], worked, sample_weight=weights)
    made: dict[str, dict[str, float]] = {ANY: {}}
    for (tool, key), value in zip(columns.feature_names_, (regression.coef_[0] * scale).tolist(), strict=True):
        if abs(value) >= MAX_WEIGHT:
            raise TrainingError(f"the weight of `{key}` is {value:g}, beyond {MAX_WEIGHT:g}: the records are no good")
        if rounded := round(value, DECIMALS):
            made.setdefault(tool, {})[key] = rounded
    return {"intercept": round(float(regression.intercept_[0]), DECIMALS), "weights": made.pop(ANY), "tools": made}


def _columns(at: Crossed, tools: frozenset[str]) -> dict[tuple[str, str], float]:
    """
    Returns the columns of a situation, each (tool, name of the weight), with the spread that the weight is believed to have.
    """
    shared, own = at.keys()
    parts = ((ANY, shared), (at.tool, own if at.tool in tools else ()))
    return {(tool, key): spread for tool, crosses in parts for key, spread in crosses}


def known_tools(counts: Mapping[Any, Count]) -> frozenset[str]:
    """
    Returns the tools with the most events in *counts*; ties by name. A name that no file can hold is none of them.
    """
    events: Counter[str] = Counter()
    for at, count in counts.items():
        events[at.tool] += count.n  # type: ignore[assignment]
    named = [tool for tool in events if tool and len(tool) <= LONGEST and tool.isprintable()]
    return frozenset(sorted(named, key=lambda tool: (-events[tool], tool))[:MAX_TOOLS])
