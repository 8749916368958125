"""
Self-correction: the outcomes of calls with other arguments, counted, shrunk and judged like the retries of the same
cells.
"""

import math

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from guardrails.core.retries.decision import CORRECTABLE
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.shrinkage import ANY, NONE, After, Corrections, Count
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import INVALID
from guardrails.offline.learning.prior import prior_corrections
from guardrails.offline.learning.rows.cells import Cell
from guardrails.offline.learning.rows.split import MIN_FOLDS, MIN_RETRIES

from .gate import Mean, ratio, slack


DECIMALS: Final = 6
LEAST: Final = 1e-3
"""Nothing is held to be surer than that when it is judged: one surprise must not decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """
    The quality of estimated corrections, on calls that they have not seen. Losses are nats per call.
    """

    calls: float
    worked: float
    """Share of them."""
    new: float
    present: float
    base: float
    """Of saying one rate, that of the calls they were counted from, each time."""
    gain: Mean
    """What the new ones save beside the present ones."""
    serves: bool
    """The new ones are good enough to go with a model that is better for other reasons."""
    better: bool
    """They are a reason by themselves."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        return {**asdict(self), "gain": self.gain.document()}


def as_labels(cells: Iterable[Cell]) -> list[Cell]:
    """
    Returns *cells* labelled by the correction, so that days and sessions are held out by corrections.
    """
    return [cell._replace(n=cell.corrected_n, s=cell.corrected) for cell in cells if cell.corrected_n > 0]


def served(cells: Iterable[Cell]) -> list[Cell]:
    """
    Returns the same of failures that other arguments mend: what their calls came to is served, and so is judged.
    """
    return as_labels(cell for cell in cells if cell.error_type in CORRECTABLE)


def only_told(cells: Iterable[Cell]) -> list[Cell]:
    """
    Returns the same of all other failures. Profiles tell what came next there, and it decides nothing.
    """
    return as_labels(cell for cell in cells if cell.error_type not in CORRECTABLE)


def corrections_of(spec: FeatureSpec, cells: Iterable[Cell]) -> Corrections:
    """
    Returns the estimates of *cells*, already decayed, and of the shipped beliefs.
    """
    cells = sorted(cells)
    counts: dict[tuple[str, str], Count] = {}
    for error, (n, s) in prior_corrections().items():
        counts[ANY, error] = Count(n, s)
    for cell in cells:
        for tool in (cell.tool, ANY):
            known = counts.get((tool, cell.error_type), NONE)
            if cell.corrected_n > 0:
                counts[tool, cell.error_type] = Count(known.n + cell.corrected_n, known.s + cell.corrected)
    counts = {key: Count(round(count.n, DECIMALS), round(count.s, DECIMALS)) for key, count in counts.items()}
    usual = Corrections(counts)
    run = spec.by_name.get("err_run")
    after: dict[int, After] = {}
    for cell in cells:
        if run is None or cell.error_type == INVALID or cell.error_type not in CORRECTABLE or cell.corrected_n <= 0:
            continue
        level = cell.context // run.stride % run.radix
        was = after.get(level, After(0.0, 0.0, 0.0))
        expected = cell.corrected_n * (usual.rate(cell.tool, cell.error_type) or 0.0)
        after[level] = After(was.n + cell.corrected_n, was.s + cell.corrected, was.expected + expected)
    return Corrections(
        counts, {level: After(*(round(count, DECIMALS) for count in said)) for level, said in after.items()}
    )


def told_of(corrections: Corrections, pairs: Iterable[tuple[str, str]]) -> Corrections:
    """
    Returns *corrections* of those *pairs* of tool and error type, and of all tools, only.
    """
    kept = set(pairs)
    counts = {key: count for key, count in corrections.counts.items() if key in kept or key[0] == ANY}
    return Corrections(counts, corrections.after)


def judged(
    spec: FeatureSpec,
    new: Corrections,
    present: RetryModel,
    held: Sequence[Cell],
    *,
    fitted: Sequence[Cell],
    trusted: Sequence[Cell],
) -> Corrected | None:
    """
    Returns whether the corrections of *new* may replace those of *present*, by the *held* cells (`as_labels`). Returns
    None if there are none.

    They must not do worse than one rate for all, the rate of the *fitted* cells. That holds for the held-out days and
    for the older *trusted* ones, which bad newest days cannot have changed. By themselves they replace a model only if
    they save log loss beyond noise.
    """
    calls, worked = _total(held)
    if calls <= 0:
        return None
    fitted_n, fitted_s = _total(fitted)
    base = fitted_s / fitted_n if fitted_n > 0 else 0.5
    mine, theirs = Corrections(new.counts, new.after), present.corrections
    losses = {
        "new": [_loss(cell, _said(spec, mine, cell, base)) for cell in held],
        "present": [_loss(cell, _said(present.spec, theirs, cell, base)) for cell in held],
        "base": [_loss(cell, base) for cell in held],
    }
    folds, weights = [cell.fold for cell in held], [cell.n for cell in held]
    gain = ratio(folds, weights, [there - here for here, there in zip(losses["new"], losses["present"], strict=True)])
    total = {name: math.fsum(loss) / calls for name, loss in losses.items()}
    against = _against(total, spec, mine, trusted)
    few = calls < MIN_RETRIES or len(set(folds)) < MIN_FOLDS
    if against is not None:
        reason = against
    elif few:
        reason = f"too little to judge by: {calls:.0f} held-out calls in {len(set(folds))} groups of sessions"
    elif gain.sure:
        reason = f"better by {gain.value:.4f} +- {gain.error:.4f} nats per call"
    else:
        reason = f"not better beyond noise: {gain.value:+.4f} +- {gain.error:.4f} nats per call"
    worse = Mean(-gain.value, gain.error).sure
    return Corrected(
        calls=calls,
        worked=worked / calls,
        **total,
        gain=gain,
        serves=against is None and not worse,
        better=against is None and not few and gain.sure,
        reason=reason,
    )


def _against(total: Mapping[str, float], spec: FeatureSpec, new: Corrections, trusted: Sequence[Cell]) -> str | None:
    if total["new"] > total["base"]:
        return f"worse than the base rate: {total['new']:.4f} nats per call, {total['base']:.4f} by the base rate"
    n, s = _total(trusted)
    if n <= 0:
        return None
    known = math.fsum(_loss(cell, _said(spec, new, cell, s / n)) for cell in trusted) / n
    base = math.fsum(_loss(cell, s / n) for cell in trusted) / n
    if known <= base + slack(n):
        return None
    return f"worse than the base rate on the days before: {known:.4f} nats per call, {base:.4f} by the base rate"


def _said(spec: FeatureSpec, corrections: Corrections, cell: Cell, otherwise: float) -> float:
    run = spec.by_name.get("err_run")
    known = run is not None and cell.error_type != INVALID
    level = cell.context // run.stride % run.radix if run is not None and known else None
    said = corrections.rate(cell.tool, cell.error_type, level)
    return otherwise if said is None else said


def _loss(cell: Cell, p: float) -> float:
    p = min(max(p, LEAST), 1 - LEAST)
    return -(cell.s * math.log(p) + (cell.n - cell.s) * math.log(1 - p))


def _total(cells: Sequence[Cell]) -> tuple[float, float]:
    return math.fsum(cell.n for cell in cells), math.fsum(cell.s for cell in cells)


def by_error(corrections: Corrections) -> dict[str, float]:
    """
    Returns calls with other arguments that were counted, by error type.
    """
    made: dict[str, float] = defaultdict(float)
    for (tool, error), count in corrections.counts.items():
        if tool != ANY:
            made[error] += count.n
    return dict(made)
