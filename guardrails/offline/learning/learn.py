"""
From daily cells to a judged model: what is held out, which terms pay, whether the new model is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.shrinkage import Corrections
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.rows.cells import HALF_LIFE_DAYS, UNDATED, Cell, decayed
from guardrails.offline.learning.rows.split import MIN_RETRIES, labelled_in, split_of

from .candidate import KEPT, Candidate, candidate, cold_model, grafted, told
from .corrections import Corrected, corrections_of, judged, only_told, served
from .drift import Drift, drifts
from .fit import RICH, SEED_TERMS, TERMS, check_outcomes
from .gate import Mean, Verdict, compare, floored


RICH_FROM: Final = 2_000
"""Labelled failures from which on the larger set of terms is usual."""
Terms = tuple[tuple[str, ...], ...]


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
        Share of failures whose context serving computed otherwise than training; 0 if none is logged.
        """
        return self.skewed / self.logged if self.logged else 0.0


def learn(
    spec: FeatureSpec,
    cells: Sequence[Cell],
    present: RetryModel | None = None,
    *,
    stakes: Stakes | None = None,
    half_life_days: float = HALF_LIFE_DAYS,
    force: bool = False,
) -> Learned:
    """
    Fit a model on all days but the newest, and compare it there with *present*, or with the shipped model.

    The compared model is the one that will be served. It is not fitted again on the days that judged it: a bad day
    never gets in unseen. Bad days may agree. A model that is worse than the base rate before the newest three days is
    therefore not better. With *force* all of the new model is wanted in spite of that, and not only the part that is
    better. Raises TrainingError if nothing can be learned.
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
        if not served(cells):
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
        good = force or corrected is None or corrected.serves
        new = candidate(spec, fitted, terms, training, rates if good else champion.corrections)
        verdict = compare(new.model, champion, split.held, stakes) if labelled_in(split.held) else None
    if verdict is not None and new is not None:
        verdict = floored(verdict, new.model, champion, split.trusted(half_life_days))
        new = told(new, {"metrics": verdict.metrics(None if present is None else present.name)})
    alone = corrected is not None and corrected.better and not (verdict is not None and verdict.better)
    if new is None or (alone and not force):
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


def _corrections(
    spec: FeatureSpec, cells: Sequence[Cell], champion: RetryModel, half_life_days: float
) -> tuple[Corrections, Corrected | None]:
    """
    Returns estimates of corrections from all days but those that judge them, and their quality. None: nothing is held
    out.

    Corrections that are told and never served have no say in it.
    """
    split = split_of(served(cells))
    beside = [cell for cell in only_told(cells) if not split.whole or cell.day < split.first]
    today = max((cell.day for cell in split.fitted or beside), default=0)
    fitted = decayed(split.fitted, today, half_life_days)
    made = corrections_of(spec, [*fitted, *decayed(beside, today, half_life_days)])
    trusted = split.trusted(half_life_days)
    return made, judged(spec, made, champion, split.held, fitted=fitted, trusted=trusted)


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


def _says(model: RetryModel) -> tuple[Any, ...]:
    return model.intercept, model.terms, model.declared, model.corrections


def _whole(count: float) -> float:
    return round(count, 3)
