"""
An exact weighted logistic regression on cells, and its coefficients as terms.

Cells stand for the rows they count: fitted on either, the coefficients are the same. The same cells always give the
same model: their order, the solver and its one thread are fixed, and the coefficients rounded.
"""

import warnings

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.retries.model_format import MAX_WEIGHT
from guardrails.core.retries.scoring import Term
from guardrails.core.values.errors import TrainingError, needs
from guardrails.offline.learning.rows.cells import Cell

from .design import Columns, collapsed, design


if TYPE_CHECKING:
    import numpy as np


DECIMALS: Final = 6
"""Of a stored coefficient: 1e-6 of log odds changes no probability by more than 3e-7."""
FEW: Final = 1_000
"""Up to so many coefficients the Hessian is small enough to be factorised (newton-cholesky)."""
INVERSE_PENALTY: Final = 1.0
"""`C`; between 0.1 and 10 the held-out log loss changes by less than a thousandth."""
SPREADS: Final = (1.0, 1.0, 0.5, 0.35)
"""Standard deviation that weights are believed to have, in log odds, for terms of one, two, three factors, and more: fine
terms say little until there is much evidence, and so cost nothing before."""
MAX_TOOLS: Final = 2_000
"""Tools with weights of their own, those with the most retries; all others are scored like tools never seen."""
TERMS: Final[tuple[tuple[str, ...], ...]] = (
    ("tool",),
    ("error",),
    ("tool", "error"),
    ("error", "attempt"),
    ("error", "err_run"),
    ("error", "fail_share"),
    ("ra",),
    ("waited",),
    ("ra", "delay"),
    ("error", "delay"),
    ("tool", "error", "delay"),
    ("error", "waited"),
    ("between",),
    ("error", "between"),
    ("tool", "error", "between"),
    ("error", "reach"),
    ("tool", "error", "reach"),
    ("source",),
    ("error", "source"),
)
"""The terms that a few thousand labelled errors can tell apart."""
SEED_TERMS: Final[tuple[tuple[str, ...], ...]] = (("tool_run",), ("elapsed",), ("prev",))
"""Consecutive calls of the tool, time since the session began, how the call before ended."""
RICH: Final[tuple[tuple[str, ...], ...]] = (
    ("tool", "error", "attempt"),
    ("tool", "error", "err_run"),
    ("tool", "error", "fail_share"),
    ("tool", "error", "waited"),
    ("tool", "error", "waited", "reach"),
    ("error", "attempt", "err_run"),
    ("error", "err_run", "delay"),
    ("tool", "error", "source"),
)
"""What pays from a few thousand labelled errors on."""


class Fitted(NamedTuple):
    """
    A fitted regression and how it came about.
    """

    intercept: float
    terms: tuple[Term, ...]
    solver: str
    iterations: int

    @property
    def coefficients(self) -> int:
        """
        The number of weights.
        """
        return sum(len(term.weights) for term in self.terms)


def fit(columns: Columns, terms: Sequence[tuple[str, ...]], spreads: Sequence[float] = (1.0,)) -> Fitted:
    """
    Fit *terms* on the cells of *columns*; L2 penalty, C = 1, the intercept unpenalised. A term of k factors is penalised by
    1 / *spreads*[k - 1]^2, the last holding for all finer ones. Terms of factors that the specification does not have are
    left out.

    Raises TrainingError if there is nothing to tell apart: no labelled retry, or one outcome only.
    """
    from guardrails.offline.learning.numeric import np

    with needs("train", "training"):
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

    check_outcomes(float(columns.n.sum()), float(columns.s.sum()))
    on = [term for term in terms if all(name in columns.levels for name in term)]
    merged = collapsed(columns, {name for term in on for name in term})
    places, matrix = design(merged, on)
    scale = np.array([spreads[min(len(on[term]), len(spreads)) - 1] for term, _ in places])
    # A column of smaller numbers needs a larger coefficient for the same weight, and so is penalised more.
    matrix.data *= scale[matrix.indices]
    rows, outcomes, weights = _rows(matrix, merged.n, merged.s)
    solver, tolerance = ("newton-cholesky", 1e-8) if len(places) <= FEW else ("newton-cg", 1e-6)
    regression = LogisticRegression(C=INVERSE_PENALTY, solver=solver, tol=tolerance, max_iter=200)
    # Threads add in no fixed order.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("error")
        regression.fit(rows, outcomes, sample_weight=weights)
    found: list[dict[str, float]] = [{} for _ in on]
    for (term, key), value in zip(places, (regression.coef_[0] * scale).tolist(), strict=True):
        rounded = round(value, DECIMALS)
        if abs(rounded) >= MAX_WEIGHT:
            raise TrainingError(f"the weight of `{key}` is {rounded:g}, beyond {MAX_WEIGHT:g}: the cells are no good")
        if rounded:
            found[term][key] = rounded
    made = tuple(Term(names, weights) for names, weights in zip(on, found, strict=True) if weights)
    return Fitted(round(float(regression.intercept_[0]), DECIMALS), made, solver, int(regression.n_iter_.max()))


def known_tools(cells: Iterable[Cell], most: int = MAX_TOOLS) -> frozenset[str]:
    """
    Returns the *most* tools with the most labelled failures; ties by name. A name that no file can hold is none of
    them.
    """
    total: dict[str, float] = {}
    for cell in cells:
        if cell.n > 0 and writable(cell.tool):
            total[cell.tool] = total.get(cell.tool, 0.0) + cell.n
    return frozenset(sorted(total, key=lambda tool: (-total[tool], tool))[:most])


def writable(name: str) -> bool:
    """
    Returns whether a file can hold *name*.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_outcomes(n: float, s: float) -> None:
    """
    Raises TrainingError if *n* retries, *s* of which worked, teach nothing.
    """
    if n <= 0:
        raise TrainingError("no failed call was ever repeated in these records, so there is nothing to learn from yet")
    if s <= 0 or s >= n:
        outcome = "worked" if s > 0 else "failed"
        raise TrainingError(f"all {n:.0f} retries in these records {outcome}: both outcomes are needed to learn")


def _rows(matrix: Any, n: "np.ndarray[Any, Any]", s: "np.ndarray[Any, Any]") -> tuple[Any, Any, Any]:
    """
    One row for the successes of a cell and one for its failures, if there are any.
    """
    from guardrails.offline.learning.numeric import np

    with needs("train", "training"):
        from scipy.sparse import vstack

    good, bad = np.flatnonzero(s > 0), np.flatnonzero(n - s > 0)
    outcomes = np.concatenate([np.ones(len(good)), np.zeros(len(bad))])
    weights = np.concatenate([s[good], (n - s)[bad]])
    return vstack([matrix[good], matrix[bad]]).tocsr(), outcomes, weights
