"""
From daily cells to a judged model: what is held out, which terms pay, whether the new model is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.shrinkage import Corrections
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.rows.cells import FOLDS, HALF_LIFE_DAYS, UNDATED, Cell, decayed

from .candidate import KEPT, Candidate, candidate, cold_model, grafted, told
from .corrections import Corrected, as_labels, corrections_of, judged
from .drift import Drift, drifts
from .fit import RICH, SEED_TERMS, TERMS, check_outcomes
from .gate import MIN_FOLDS, MIN_RETRIES, Mean, Verdict, compare, floored, trusted_of


RICH_FROM: Final = 2_000
"""Labelled failures from which on the larger set of terms is usual."""
HELD_SHARE: Final = 0.2
"""Of all retries, what is held out at least, up to `HELD_RETRIES`: days that bring few judge together."""
HELD_RETRIES: Final = 200
HELD_FOLDS: Final = max(MIN_FOLDS, FOLDS // 3)
"""Groups of sessions that are held out where there is one day only."""
Terms = tuple[tuple[str, ...], ...]


class Split(NamedTuple):
    """
    Cells to fit on, cells to judge by, and a description of the cells to judge by.
    """

    fitted: list[Cell]
    held: list[Cell]
    """Those of a day without groups of sessions are a group by themselves."""
    day: int
    """The newest day that is held out, in UTC days since 1970, `UNDATED`: none is."""
    first: int
    """The oldest one."""
    whole: bool
    """Days by themselves; else some sessions of the only one."""

    def trusted(self, half_life_days: float) -> list[Cell]:
        """
        The older days, see `trusted_of`.
        """
        return trusted_of(self.fitted, self.day, half_life_days) if self.whole else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """
    A new model, how it compares, and what was noticed on the way.
    """

    new: Candidate
    verdict: Verdict | None
    """None: there was nothing to judge by."""
    corrected: Corrected | None
    """The same of what calls with other arguments came to; see `corrections.judged`."""
    unchanged: bool
    """It says what the present model says."""
    present: str | None
    """Name of the model that it was compared with; None: the shipped one."""
    day: int
    """The newest day that was held out."""
    first_day: int
    """The oldest one."""
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
        found = (self.verdict, self.corrected)
        return not self.unchanged and any(one is not None and one.better for one in found)

    @property
    def grafted(self) -> bool:
        """
        Only its part on corrections is new.
        """
        return self.new.fitted.solver == KEPT

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
    Fit a model on all days but the newest, and compare it there with *present*, or with the shipped model.

    The compared model is the one that will be served. It is not fitted again on the days that judged it: a bad day
    never gets in unseen. Bad days may agree. A model that is worse than the base rate before the newest three days is
    therefore not better. Raises TrainingError if nothing can be learned.
    """
    if not cells:
        raise TrainingError("there are no failed calls in these records, so there is nothing to learn from yet")
    labelled, worked = sum(cell.n for cell in cells), sum(cell.s for cell in cells)
    notes: list[str] = []
    # Decayed counts are no whole numbers: added in another order they differ, and so would the file.
    cells = sorted(cells)
    if present is not None and present.spec.digest != spec.digest:
        notes.append(f"the present model `{present.name}` has other features: compared with the shipped one instead")
        present = None
    champion = cold_model(spec).model if present is None else present
    rates, corrected = _corrections(spec, cells, champion, half_life_days)
    try:
        check_outcomes(labelled, worked)
    except TrainingError as error:
        if not any(cell.corrected_n > 0 for cell in cells):
            raise
        notes.append(f"of retries nothing is learned: {error}")
    split = split_of(cells, notes)
    window = sorted({cell.day for cell in split.fitted if cell.day != UNDATED})
    fitted = decayed(split.fitted, window[-1] if window else 0, half_life_days)
    chosen: dict[str, float] = {}
    verdict, new = None, None
    if 0 < worked < labelled:
        terms, chosen = _terms(spec, split.fitted, half_life_days)
        training = {
            "days": [window[0], window[-1]] if window else None,
            "held_out_day": None if split.day == UNDATED else split.day,
            "held_out_from": None if split.day == UNDATED else split.first,
            "failures": _whole(sum(cell.n + cell.unlabelled for cell in split.fitted)),
            "retries": _whole(sum(cell.n for cell in split.fitted)),
            "half_life_days": half_life_days,
            "chosen_terms": chosen,
        }
        served = rates if corrected is None or corrected.serves else champion.corrections
        new = candidate(spec, fitted, terms, training, served)
        verdict = compare(new.model, champion, split.held, stakes) if _labelled(split.held) else None
    if verdict is not None and new is not None:
        verdict = floored(verdict, new.model, split.trusted(half_life_days))
        new = told(new, {"metrics": verdict.metrics(None if present is None else present.name)})
    if new is None or (corrected is not None and corrected.better and not (verdict is not None and verdict.better)):
        new = grafted(champion, rates, spec, fitted)
    if corrected is not None:
        new = told(new, {"corrections": corrected.to_dict()})
    unchanged = present is not None and _says(present) == _says(new.model)
    return Learned(
        new=new,
        verdict=verdict,
        corrected=corrected,
        unchanged=unchanged,
        present=None if present is None else present.name,
        day=split.day,
        first_day=split.first,
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
    Returns the newest days with enough labels to be judged against all before; of one day, a third of its sessions.

    They hold a fifth of the retries, at least 50 and no more than 200 if they can. One day that has more is held out
    alone. Remarks about that go to *notes*.
    """
    notes = [] if notes is None else notes
    by_day: dict[int, float] = {}
    for cell in cells:
        if cell.day != UNDATED:
            by_day[cell.day] = by_day.get(cell.day, 0.0) + cell.n
    newest = max(by_day, default=UNDATED)
    days = sorted((day for day, n in by_day.items() if n > 0), reverse=True)
    if not days:
        what = "have no times" if newest == UNDATED else "have no labelled failures with a time"
        notes.append(f"the records {what}: there is nothing to judge a model by")
        return Split(list(cells), [], UNDATED, UNDATED, whole=False)
    total = sum(by_day.values())
    wanted = max(MIN_RETRIES, min(HELD_SHARE * total, HELD_RETRIES))
    first, count = days[0], by_day[days[0]]
    for day in days[1:]:
        # What is left to fit on must not be less than what judges it.
        if count >= wanted or count + by_day[day] > total / 2:
            break
        first, count = day, count + by_day[day]
    before = [cell for cell in cells if cell.day < first]
    if _labelled(before) and sum(cell.s for cell in before) > 0:
        if first != newest:
            notes.append(f"judged by {shown(first)} to {shown(days[0])}, with {count:.0f} labelled failures")
        held = [_grouped(cell, first) for cell in cells if cell.day >= first]
        return Split(before, held, days[0], first, whole=True)
    day = days[0]
    notes.append(f"{shown(day)} is the only day with labelled failures: a third of its sessions is held out")
    held = [cell for cell in cells if cell.day == day and 0 <= cell.fold < HELD_FOLDS]
    kept = [cell for cell in cells if cell.day < day or (cell.day == day and cell.fold >= HELD_FOLDS)]
    return Split(kept, held, day, day, whole=False)


def _grouped(cell: Cell, first: int) -> Cell:
    return cell if cell.fold >= 0 else cell._replace(fold=FOLDS + cell.day - first)


def _corrections(
    spec: FeatureSpec, cells: Sequence[Cell], champion: RetryModel, half_life_days: float
) -> tuple[Corrections, Corrected | None]:
    """
    Returns estimates of corrections from all days but those that judge them, and their quality. None: nothing is held
    out.
    """
    split = split_of(as_labels(cells))
    fitted = decayed(split.fitted, max((cell.day for cell in split.fitted), default=0), half_life_days)
    made = corrections_of(spec, fitted)
    trusted = split.trusted(half_life_days)
    return made, judged(spec, made, champion, split.held, fitted=fitted, trusted=trusted)


def shown(day: int) -> str:
    """
    Returns a day as a date.
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
    return model.intercept, model.terms, model.declared, model.corrections


def _whole(count: float) -> float:
    return round(count, 3)
