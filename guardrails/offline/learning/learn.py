"""
From daily cells to a judged model: what is held out, which terms pay, whether the new model is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.rows.cells import APART, FOLDS, HALF_LIFE_DAYS, UNDATED, Cell, decayed

from .candidate import Candidate, candidate, cold_model, told
from .drift import Drift, drifts
from .fit import RICH, SEED_TERMS, TERMS, check_outcomes
from .gate import MIN_FOLDS, MIN_RETRIES, Mean, Verdict, compare


RICH_FROM: Final = 2_000
"""Labelled failures from which on the larger set of terms is usual."""
HELD_FOLDS: Final = max(MIN_FOLDS, FOLDS // 3)
"""Groups of sessions that are held out where there is one day only."""
Terms = tuple[tuple[str, ...], ...]


class Split(NamedTuple):
    """
    Cells to fit on and cells to judge by, and what the latter are.
    """

    fitted: list[Cell]
    held: list[Cell]
    day: int
    """UTC days since 1970, `UNDATED`: none is held out."""
    whole: bool
    """A day by itself; else some sessions of the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """
    A new model, how it compares, and what was noticed on the way.
    """

    new: Candidate
    verdict: Verdict | None
    """None: there was nothing to judge by."""
    unchanged: bool
    """It says what the present model says."""
    present: str | None
    """Name of the model that it was compared with; None: the shipped one."""
    day: int
    """The day that was held out."""
    labelled: float
    failures: float
    days: int
    logged: float
    skewed: float
    chosen: dict[str, float]
    """Sets of terms that are in beside the basic one, with the log loss that each saves on the day before the held-out one."""
    drifts: list[Drift] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def better(self) -> bool:
        """
        It should be served.
        """
        return not self.unchanged and self.verdict is not None and self.verdict.better

    @property
    def skew(self) -> float:
        """
        Share of failures whose context serving computed otherwise than training; 0 where none is logged.
        """
        return self.skewed / self.logged if self.logged else 0.0


def learn(
    spec: FeatureSpec,
    cells: Sequence[Cell],
    present: RetryModel | None = None,
    *,
    stakes: Stakes | None = None,
    half_life_days: float = HALF_LIFE_DAYS,
) -> Learned:
    """
    Fit a model on all days but the newest, and compare it on that day with *present*, or with the shipped model.

    What is compared is what will be served: it is not fitted again on the day that judged it, so that a bad day never
    gets in unseen. Raises TrainingError where nothing can be learned.
    """
    labelled, worked = sum(cell.n for cell in cells), sum(cell.s for cell in cells)
    if not cells:
        raise TrainingError("there are no failed calls in these records, so there is nothing to learn from yet")
    check_outcomes(labelled, worked)
    notes: list[str] = []
    # Decayed counts are no whole numbers: added in another order they differ, and so would the file.
    cells = sorted(cells)
    split = split_of(cells, notes)
    terms, chosen = _terms(spec, split.fitted, half_life_days)
    window = sorted({cell.day for cell in split.fitted if cell.day != UNDATED})
    training = {
        "days": [window[0], window[-1]] if window else None,
        "held_out_day": None if split.day == UNDATED else split.day,
        "failures": _whole(sum(cell.n + cell.unlabelled for cell in split.fitted)),
        "retries": _whole(sum(cell.n for cell in split.fitted)),
        "half_life_days": half_life_days,
        "chosen_terms": chosen,
    }
    new = candidate(spec, decayed(split.fitted, window[-1] if window else 0, half_life_days), terms, training)
    if present is not None and present.spec.digest != spec.digest:
        notes.append(f"the present model `{present.name}` has other features: compared with the shipped one instead")
        present = None
    champion = cold_model(spec).model if present is None else present
    verdict = compare(new.model, champion, split.held, stakes) if _labelled(split.held) else None
    unchanged = present is not None and _says(present) == _says(new.model)
    if verdict is not None:
        metrics = {
            "new": verdict.to_dict()["new"],
            "replaced": verdict.to_dict()["present"],
            "replaced_model": None if present is None else present.name,
            "gain": verdict.gain.document(),
            "value_gain": verdict.value_gain.document(),
        }
        new = told(new, {"metrics": metrics})
    return Learned(
        new=new,
        verdict=verdict,
        unchanged=unchanged,
        present=None if present is None else present.name,
        day=split.day,
        labelled=labelled,
        failures=sum(cell.n + cell.unlabelled for cell in cells),
        days=len({cell.day for cell in cells if cell.day != UNDATED}),
        logged=sum(cell.logged for cell in cells),
        skewed=sum(cell.skewed for cell in cells),
        chosen=chosen,
        # The shipped model is no prediction for anyone's tools.
        drifts=[] if present is None or not split.whole else drifts(present, split.held),
        notes=notes,
    )


def split_of(cells: Sequence[Cell], notes: list[str] | None = None) -> Split:
    """
    The newest day with enough labels to judge by against all before it; of a single day, a third of its sessions.

    What is remarkable about that goes to *notes*.
    """
    notes = [] if notes is None else notes
    by_day: dict[int, float] = {}
    for cell in cells:
        if cell.day != UNDATED:
            by_day[cell.day] = by_day.get(cell.day, 0.0) + (cell.n if cell.fold >= 0 else 0.0)
    judges = sorted((day for day, n in by_day.items() if n > 0), reverse=True)
    newest = max(by_day, default=UNDATED)
    if not judges:
        what = "have no times" if newest == UNDATED else f"have no labelled failures on their newest {APART} days"
        notes.append(f"the records {what}: there is nothing to judge a model by")
        return Split(list(cells), [], UNDATED, whole=False)
    day = next((day for day in judges if by_day[day] >= MIN_RETRIES), judges[0])
    if day != newest:
        notes.append(f"day {shown(newest)} has {by_day[newest]:.0f} labelled failures: judged by {shown(day)}")
    before = [cell for cell in cells if cell.day < day]
    if _labelled(before) and sum(cell.s for cell in before) > 0:
        return Split(before, [cell for cell in cells if cell.day == day], day, whole=True)
    notes.append(f"{shown(day)} is the only day with labelled failures: a third of its sessions is held out")
    held = [cell for cell in cells if cell.day == day and 0 <= cell.fold < HELD_FOLDS]
    kept = [cell for cell in cells if cell.day < day or (cell.day == day and cell.fold >= HELD_FOLDS)]
    return Split(kept, held, day, whole=False)


def shown(day: int) -> str:
    """
    A day as a date.
    """
    from datetime import UTC, datetime

    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def _terms(spec: FeatureSpec, cells: list[Cell], half_life_days: float) -> tuple[Terms, dict[str, float]]:
    """
    The terms to fit, and the log loss that sets of them save on the newest day of *cells*, by models of those before it.

    Interactions of what is in already are usual, and go where they lose; other factors come in where they save.
    """
    rich = sum(cell.n for cell in cells) >= RICH_FROM
    terms = (*TERMS, *RICH) if rich else TERMS
    split = split_of(cells)
    if not split.whole or sum(cell.n for cell in split.held) < MIN_RETRIES:
        return terms, {}
    train = decayed(split.fitted, max(cell.day for cell in split.fitted), half_life_days)

    def gain(more: Terms, less: Terms) -> Mean:
        return compare(model_of(more), model_of(less), split.held).gain

    @cache
    def model_of(on: Terms) -> RetryModel:
        return candidate(spec, train, on).model

    chosen = {}
    if rich:
        saved = gain(terms, TERMS)
        if Mean(-saved.value, saved.error).sure:
            terms = TERMS
        else:
            chosen["rich"] = round(saved.value, 6)
    saved = gain((*terms, *SEED_TERMS), terms)
    if saved.sure:
        terms = (*terms, *SEED_TERMS)
        chosen["seed"] = round(saved.value, 6)
    return terms, chosen


def _labelled(cells: Sequence[Cell]) -> bool:
    return any(cell.n > 0 for cell in cells)


def _says(model: RetryModel) -> tuple[Any, ...]:
    return model.intercept, model.terms, model.declared, dict(model.corrections)


def _whole(count: float) -> float:
    return round(count, 3)
