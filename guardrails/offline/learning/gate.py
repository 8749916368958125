"""
Promotion: a new model replaces the present one only if it is better, beyond noise, on sessions that neither has seen.
"""

import math

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.scoring import EXPLORE
from guardrails.offline.learning.rows.cells import Cell
from guardrails.offline.learning.rows.split import MIN_FOLDS, MIN_RETRIES

from .design import Columns, columns_of, logits


if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]

ERRORS: Final = 2.0
"""Standard errors that a gain must exceed, and that a loss of value may not."""
CALIBRATION: Final = 0.005
"""How much larger the calibration error may become; smaller differences are noise of the bins."""
VALUE: Final = 0.005
"""How much less a retry's decision may be worth, beyond noise, for a better log loss: the costs are no exact figures."""
RARE: Final = 0.03
"""Share of retries that work up to which they next to never do."""
PULL: Final = 0.02
"""Nats per retry that the beliefs, worth 40 retries an error type, may cost a model of such retries."""
BINS: Final = 20


class Mean(NamedTuple):
    """
    A mean per retry with its standard error between groups of sessions; retries of one session are not independent.
    """

    value: float
    error: float

    @property
    def sure(self) -> bool:
        """
        Above 0 by more than noise.
        """
        return self.value > ERRORS * self.error and self.value > 0

    def document(self) -> dict[str, float | None]:
        """
        Returns the JSON value of it, which knows no infinity.
        """
        return {"value": self.value, "error": self.error if math.isfinite(self.error) else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """
    The quality of a model, on retries that it has not seen.
    """

    retries: float
    rate: float
    """Share that worked."""
    log_loss: float
    """Nats per retry."""
    brier: float
    calibration_error: float
    """ECE: mean distance of prediction and outcome over 20 bins of equal width, weighted."""
    value: float
    """Of retrying where it pays by the model, per retry of the log; a success is worth 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    The outcome of comparing a *new* model with the *present* one.
    """

    new: Quality
    present: Quality
    gain: Mean
    """Log loss that the new model saves per retry."""
    value_gain: Mean
    better: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        made = asdict(self)
        return {**made, "gain": self.gain.document(), "value_gain": self.value_gain.document()}

    def metrics(self, replaced: str | None) -> dict[str, Any]:
        """
        Returns the metrics that the file of the new model holds. The name of the present model is *replaced*, or None
        for the shipped one.
        """
        said = self.to_dict()
        kept = {key: said[key] for key in ("new", "gain", "value_gain")}
        return {**kept, "replaced": said["present"], "replaced_model": replaced}


class Judged(NamedTuple):
    """
    Held-out cells with the predictions of a model for them.
    """

    p: "Numbers"
    loss: "Numbers"
    """Sum of the log loss over each cell's retries."""
    value: "Numbers"


def held_out(model: RetryModel, cells: Sequence[Cell]) -> Columns:
    """
    Returns *cells* as *model* would be asked about them: nobody knows in advance who causes a retry.
    """
    return columns_of(model.spec, cells, source=EXPLORE)


def judge(model: RetryModel, columns: Columns, stakes: Stakes) -> Judged:
    """
    Returns the prediction of *model* for each cell of *columns*, and its value at *stakes*.
    """
    from guardrails.offline.learning.numeric import np

    logit = logits(columns, model.intercept, model.terms)
    n, s = columns.n, columns.s
    p = 1 / (1 + np.exp(-logit))
    loss = s * np.logaddexp(0, -logit) + (n - s) * np.logaddexp(0, logit)
    price = stakes.retry_cost + stakes.wait_cost_per_s * _waits(columns)
    return Judged(p, loss, np.where(p > price, s - n * price, 0.0))


def quality(columns: Columns, judged: Judged) -> Quality:
    """
    Returns the figures of a model on held-out cells.
    """
    from guardrails.offline.learning.numeric import np

    n, s, p = columns.n, columns.s, judged.p
    total = float(n.sum())
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    sums = [np.bincount(place, weights=weights, minlength=BINS) for weights in (n * p, s)]
    return Quality(
        retries=total,
        rate=float(s.sum()) / total,
        log_loss=float(judged.loss.sum()) / total,
        brier=float((s * (1 - p) ** 2 + (n - s) * p**2).sum()) / total,
        calibration_error=float(np.abs(sums[0] - sums[1]).sum()) / total,
        value=float(judged.value.sum()) / total,
    )


def compare(new: RetryModel, present: RetryModel, cells: Sequence[Cell], stakes: Stakes | None = None) -> Verdict:
    """
    Returns whether *new* should replace *present*, by held-out *cells* that still know their folds.

    Both must be of one feature specification. Raises ValueError if there is no labelled cell.
    """
    stakes = stakes or Stakes()
    columns = held_out(new, cells)
    if not len(columns):
        raise ValueError("no labelled cell to judge by")
    first, second = judge(new, columns, stakes), judge(present, columns, stakes)
    a, b = quality(columns, first), quality(columns, second)
    gain = mean_of(columns, second.loss - first.loss)
    value_gain = mean_of(columns, first.value - second.value)
    reason = _against(a, b, gain, value_gain, columns)
    told = f"better by {gain.value:.4f} +- {gain.error:.4f} nats per retry" if reason is None else reason
    return Verdict(new=a, present=b, gain=gain, value_gain=value_gain, better=reason is None, reason=told)


def floored(verdict: Verdict, new: RetryModel, present: RetryModel, trusted: Sequence[Cell]) -> Verdict:
    """
    Returns *verdict*, or that *new* is no better if it says less of the cells *trusted* than one number for all of them
    would.

    It was fitted on them, so that nothing but other cells can have led it away from what they say. If next to nothing ever
    works, the beliefs do too. So it may then say a little less, if *present* says much less of them.
    """
    columns = held_out(new, [cell for cell in trusted if cell.n > 0])
    if not verdict.better or not len(columns):
        return verdict
    known = quality(columns, judge(new, columns, Stakes()))
    base = _entropy(known.rate)
    if known.log_loss <= base + slack(known.retries):
        return verdict
    now = quality(columns, judge(present, columns, Stakes()))
    if known.rate <= RARE and known.log_loss <= min(base + PULL, now.log_loss - PULL):
        return verdict
    reason = (
        f"worse than the base rate on {known.retries:.0f} retries of the days before: {known.log_loss:.4f} nats per retry, "
        f"{base:.4f} by the base rate; look at the newest days, `--force` if the world has changed"
    )
    return replace(verdict, better=False, reason=reason)


def slack(retries: float) -> float:
    """
    Nats per retry that are noise if a model is held against the base rate of so few *retries*; none from 50 on.
    """
    return 0.0 if retries >= MIN_RETRIES else 1 / math.sqrt(max(retries, 1.0))


def _entropy(rate: float) -> float:
    """
    Nats per retry of saying *rate* each time.
    """
    return sum(p * -math.log(p) for p in (rate, 1 - rate) if 0 < p < 1)


def mean_of(columns: Columns, sums: "Numbers") -> Mean:
    """
    Returns the mean per retry of *sums*, one for each cell of *columns*.
    """
    return ratio(columns.fold, columns.n, sums)


def ratio(folds: "Sequence[int] | Numbers", n: "Sequence[float] | Numbers", sums: "Sequence[float] | Numbers") -> Mean:
    """
    Returns the sum of *sums* by that of *n*; its standard error is that of a ratio over the *folds*.
    """
    from guardrails.offline.learning.numeric import np

    groups, place = np.unique(np.asarray(folds), return_inverse=True)
    total = np.bincount(place, weights=np.asarray(sums, dtype=float))
    weight = np.bincount(place, weights=np.asarray(n, dtype=float))
    value = float(total.sum() / weight.sum())
    if len(groups) < 2:
        return Mean(value, math.inf)
    spread = float(((total - value * weight) ** 2).sum()) * len(groups) / (len(groups) - 1)
    return Mean(value, math.sqrt(spread) / float(weight.sum()))


def _against(new: Quality, present: Quality, gain: Mean, value_gain: Mean, columns: Columns) -> str | None:
    from guardrails.offline.learning.numeric import np

    folds = len(np.unique(columns.fold))
    if folds < MIN_FOLDS or new.retries < MIN_RETRIES:
        return (
            f"too little to judge by: {new.retries:.0f} held-out retries in {folds} groups of sessions "
            f"(at least {MIN_RETRIES} in {MIN_FOLDS})"
        )
    if not gain.sure:
        return f"not better beyond noise: {gain.value:+.4f} +- {gain.error:.4f} nats per retry"
    if new.calibration_error > present.calibration_error + CALIBRATION + 1 / math.sqrt(new.retries):
        return (
            f"worse calibrated: error {new.calibration_error:.3f}, the present model's is "
            f"{present.calibration_error:.3f}"
        )
    if value_gain.value < -max(VALUE, ERRORS * value_gain.error):
        return f"its decisions are worth less: {value_gain.value:+.4f} +- {value_gain.error:.4f} per retry"
    return None


def _waits(columns: Columns) -> "Numbers":
    """
    Seconds that stand for the delay of each cell.
    """
    from guardrails.offline.learning.numeric import np

    delay = columns.spec.by_name.get("delay")
    if delay is None:
        return np.zeros(len(columns))
    # A wait that is never advised costs what the least of its kind costs.
    seconds = [0.0, 0.0, *(edge / 1000 for edge in delay.edges)][-delay.radix :]
    for wait in reversed(columns.spec.delays_ms):
        seconds[delay.level(wait)] = wait / 1000
    return np.array(seconds)[columns.levels["delay"]]
