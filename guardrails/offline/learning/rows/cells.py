"""
Weighted cells: the sums of all records of a kind, and all the data that training needs of them.

A cell counts the failures that have everything in common: day, tool, error type, context, and what was done about it.
The codes are packed by a feature specification (`FeatureSpec.decode_context`, `decode_action`). Cells add up: the cells
of two sets of sessions are the sums. A day that was counted is never read again, and older days may weigh less.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple


DAY_MS: Final = 86_400_000
HALF_LIFE_DAYS: Final = 10.0
"""After so many days a failure weighs half; 7 to 14 days lose .001 log loss in a stable world and follow a changed one."""
UNDATED: Final = -1
"""Day of records without times, and fold of days that are not to be held out."""
FOLDS: Final = 16
"""Groups of sessions that the newest days are kept apart by, so that a comparison on one of them has a standard error."""
APART: Final = 3
"""Days that are kept apart so: one that has just begun, the one that judges a model, and the one that its terms are chosen by."""
SOURCES: Final = ("agent", "policy", "explore")
"""Who caused a retry; where a record does not say, the agent did."""


class Cell(NamedTuple):
    """
    Failures with everything in common; counts are floats, since decay makes them so.
    """

    day: int
    """UTC days since 1970 of the failure, `UNDATED` without a time."""
    fold: int
    """Group of its session, 0 to `FOLDS` - 1, kept for the `APART` newest days; `UNDATED` for older ones."""
    tool: str
    error_type: str
    """Of `types.ERROR_TYPES`, or `INVALID`."""
    context: int
    """Context code; 0 where *error_type* is `INVALID`."""
    action: int
    """Action code (it says whether a state-changing call worked in between), or `NO_ACTION`."""
    source: str
    """One of `SOURCES`, `""` with `NO_ACTION`."""
    n: float
    """Labelled failures: the same call came again within the limits of the specification."""
    s: float
    """Those of *n* where it then worked."""
    unlabelled: float
    """Failures after which it did not come again: no evidence either way."""
    corrected_n: float
    """Failures, of both kinds, after which the next call of the tool had other arguments."""
    corrected: float
    """Those of *corrected_n* where that call worked; where *error_type* is `INVALID`, where its arguments then fitted."""
    logged: float
    """Failures whose record says which context serving computed by the same version of the specification."""
    skewed: float
    """Those of *logged* where it is another context than the one computed here; must be 0."""


KEYS: Final = Cell._fields[:7]
COUNTS: Final = Cell._fields[7:]


def apart_from(newest_day: int) -> int:
    """
    Returns the first of the days that are kept apart if *newest_day* is the last, which may be `UNDATED`.
    """
    return max(0, newest_day - APART + 1)


def merged(cells: Iterable[Cell]) -> list[Cell]:
    """
    Returns the sums of *cells* by their keys, in the order of the keys.
    """
    sums: dict[tuple[object, ...], list[float]] = {}
    for cell in cells:
        counts = sums.setdefault(cell[:7], [0.0] * len(COUNTS))
        for at, count in enumerate(cell[7:]):
            counts[at] += count
    return [Cell(*key, *sums[key]) for key in sorted(sums)]  # type: ignore[arg-type]


def decayed(cells: Iterable[Cell], today: int, half_life_days: float = HALF_LIFE_DAYS) -> list[Cell]:
    """
    Returns *cells* of all days as those of one, `UNDATED`. Each weighs half for every *half_life_days* that its day is
    before *today*. Undated ones count whole, as do days after *today*. Raises ValueError if the half-life is not
    positive.
    """
    if not half_life_days > 0:
        raise ValueError(f"a half-life of {half_life_days:g} days: it must be positive")
    return merged(_weighted(cells, today, half_life_days))


def _weighted(cells: Iterable[Cell], today: int, half_life_days: float) -> Iterator[Cell]:
    weights: dict[int, float] = {UNDATED: 1.0}
    for cell in cells:
        weight = weights.get(cell.day)
        if weight is None:
            weight = weights[cell.day] = 0.5 ** (max(0, today - cell.day) / half_life_days)
        yield Cell(UNDATED, UNDATED, *cell[2:7], *(count * weight for count in cell[7:]))
