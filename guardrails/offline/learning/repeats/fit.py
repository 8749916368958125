"""
Fits the repeat model on rows, and tests it on sources that it was not fitted on. Chooses the probability from which on
to deny.

The slopes are fitted on all sources with an intercept for each of them. The shipped intercept is fitted afterwards with
the slopes held. It uses the *base* sources, or a person's own records.
"""

import math

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from guardrails.core.repetition.learned.features import FACTORS, KIND, WAITS, Levels
from guardrails.core.repetition.learned.model import UNKNOWN, RepeatModel
from guardrails.core.retries.scoring import SOURCE, Term, probability
from guardrails.core.values.errors import TrainingError, needs
from guardrails.offline.learning.design import Columns
from guardrails.offline.learning.fit import fit
from guardrails.policy.feature_file import shipped_spec

from .rows import Row


TERMS: Final[tuple[tuple[str, ...], ...]] = (
    (SOURCE,),
    *((name,) for name in FACTORS),
    ("same", "changed"),
    ("same", "kind"),
    ("same", "gap"),
    ("same", "last"),
    ("two", "changed"),
    ("two", "brought"),
    ("alike", "brought"),
    ("alike", "kind"),
    ("alike", "dull"),
    ("last", "changed"),
    ("brought", "dull"),
)
MAX_WRONG: Final = 3 / 10_000
"""Denied second occurrences that were wrong, of all calls; the plain rules of `Loops` have none over coding sources."""
LEAST: Final = 0.9
"""No call is refused at less, however few of those were wrong where the model was tested: other sources have more of them."""
NEVER: Final = 2.0
DECIMALS: Final = 6

Counts = Mapping[tuple[str, Levels], tuple[int, int]]
"""(labelled calls, those of them that brought nothing) by source and levels."""


class Scored(NamedTuple):
    """
    A row, and its score by a model that has not seen its source.
    """

    row: Row
    p: float
    """0 where nobody looked."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """
    A fitted regression without its intercept.
    """

    terms: tuple[Term, ...]

    def model(self, counts: Counts, deny_at: float = NEVER) -> RepeatModel:
        """
        With the intercept that fits *counts*.
        """
        return RepeatModel(intercept_of(RepeatModel(0.0, self.terms, NEVER), counts), self.terms, deny_at)


def counted(rows: Iterable[Row]) -> dict[tuple[str, Levels], tuple[int, int]]:
    """
    Returns the labelled rows that were looked at, by source and levels.
    """
    n: Counter[tuple[str, Levels]] = Counter()
    s: Counter[tuple[str, Levels]] = Counter()
    for row in rows:
        if row.levels is not None and row.label is not None:
            n[row.source, row.levels] += 1
            s[row.source, row.levels] += row.label
    return {key: (total, s[key]) for key, total in sorted(n.items())}


def fit_slopes(counts: Counts) -> Slopes:
    """
    Fit all terms on *counts*. Raises TrainingError if there is nothing to tell apart.
    """
    from guardrails.offline.learning.numeric import np

    total, dull = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    if not 0 < dull < total:
        raise TrainingError(f"of {total:,} labelled calls {dull:,} brought nothing new: both kinds are needed to learn")
    names = {name: tuple(str(level) for level in range(radix)) for name, radix in FACTORS.items()}
    names[SOURCE] = tuple(sorted({source for source, _ in counts}))
    levels: dict[str, Any] = {
        name: np.array([-1 if (name, key[at]) in UNKNOWN else key[at] for _, key in counts], dtype=np.int64)
        for at, name in enumerate(FACTORS)
    }
    levels[SOURCE] = np.array([names[SOURCE].index(source) for source, _ in counts], dtype=np.int64)
    n, s = (np.array([pair[at] for pair in counts.values()], dtype=float) for at in (0, 1))
    # All factors have their levels for names here, so that the specification of retries is not asked.
    columns = Columns(shipped_spec(), names, levels, n, s, np.full(len(counts), -1))
    return Slopes(tuple(term for term in fit(columns, TERMS).terms if term.on != (SOURCE,)))


def intercept_of(model: RepeatModel, counts: Counts) -> float:
    """
    Returns the intercept with which *model* expects as many dull calls as *counts* has. Half a call is added to either
    side, so that few records move it little.

    Raises TrainingError if *counts* is empty.
    """
    if not counts:
        raise TrainingError("no call of these records can be labelled, so there is nothing to fit an intercept on")
    bare = [(model.logit(levels) - model.intercept, n) for (_, levels), (n, _) in counts.items()]
    total = sum(n for _, n in bare)
    target = (sum(s for _, s in counts.values()) + 0.5) * total / (total + 1)
    low, high = -20.0, 20.0
    while high - low > 10**-DECIMALS / 2:
        middle = (low + high) / 2
        expected = sum(n * probability(middle + logit) for logit, n in bare)
        low, high = (middle, high) if expected < target else (low, middle)
    return round((low + high) / 2, DECIMALS)


def score(model: RepeatModel, rows: Iterable[Row]) -> list[Scored]:
    """
    Returns the probabilities that *model* gives *rows*.
    """
    return [Scored(row, 0.0 if row.levels is None else model.probability(row.levels)) for row in rows]


def leave_one_out(rows: Sequence[Row], base: Collection[str]) -> dict[str, tuple[RepeatModel, RepeatModel]]:
    """
    Returns, for each source, a model fitted on all others, its intercept from those of *base* among them. The second
    model of each has the intercept fitted on the source itself, as a deployment does with its own records.
    """
    counts = counted(rows)
    made = {}
    for source in sorted({row.source for row in rows}):
        others = {key: pair for key, pair in counts.items() if key[0] != source}
        own = {key: pair for key, pair in counts.items() if key[0] == source}
        slopes = fit_slopes(others)
        based = {key: pair for key, pair in others.items() if key[0] in base} or others
        model = slopes.model(based)
        made[source] = (model, slopes.model(own) if own else model)
    return made


class Refused(NamedTuple):
    """
    The effect of denying second occurrences from one probability on.
    """

    at: float
    caught: int
    """Second occurrences that brought nothing and are denied."""
    wrong: int
    """Denied, though they brought something."""


def second_occurrences(scored: Iterable[Scored]) -> list[Refused]:
    """
    Returns the curve: for each probability the denials from it on, the highest first.
    """
    by_p: dict[float, list[int]] = {}
    for row, p in scored:
        if row.earlier == 1 and row.levels is not None and row.levels[KIND] != WAITS and row.worth != "unknown":
            kinds = by_p.setdefault(p, [0, 0])
            kinds[row.worth == "new"] += 1
    caught = wrong = 0
    curve = []
    for p in sorted(by_p, reverse=True):
        caught += by_p[p][0]
        wrong += by_p[p][1]
        curve.append(Refused(p, caught, wrong))
    return curve


def deny_at(based: Sequence[Scored]) -> float:
    """
    Returns the lowest probability, `LEAST` or more, from which on wrong denials are at most `MAX_WRONG` of the calls
    *based*; `NEVER` if there is none. Rounded up to a thousandth.
    """
    allowed = math.floor(MAX_WRONG * len(based))
    points = {LEAST, *(math.ceil(point.at * 1000) / 1000 for point in second_occurrences(based))}
    return next((at for at in sorted(points) if at >= LEAST and summed(based, at).wrong <= allowed), NEVER)


def summed(scored: Iterable[Scored], at: float) -> Refused:
    """
    Returns the effect of denying second occurrences from the probability *at* on.
    """
    reached = [point for point in second_occurrences(scored) if point.at >= at]
    return Refused(at, *reached[-1][1:]) if reached else Refused(at, 0, 0)


def figures(scored: Sequence[Scored]) -> dict[str, float | int | None]:
    """
    Returns how well *scored* tells calls that bring nothing from others: over labelled calls, those that nobody looked
    at included.
    """
    with needs("train", "training"):
        from sklearn.metrics import average_precision_score, roc_auc_score

    known = [(one.row.label, one.p) for one in scored if one.row.label is not None]
    labels, ps = [bool(label) for label, _ in known], [p for _, p in known]
    both = 0 < sum(labels) < len(labels)
    flagged = [label for label, p in known if p >= 0.5]
    return {
        "calls": len(scored),
        "labelled": len(known),
        "nothing_new": sum(labels),
        "auc": round(float(roc_auc_score(labels, ps)), 4) if both else None,
        "ap": round(float(average_precision_score(labels, ps)), 4) if both else None,
        "nudged": len(flagged),
        "nudged_right": sum(map(bool, flagged)),
        "expected": round(sum(ps), 1),
    }
