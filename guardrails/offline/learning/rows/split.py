"""
Which cells a model is fitted on, and which ones judge it: by the weight of evidence, over days or by sessions.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from .cells import APART, FOLDS, UNDATED, Cell


MIN_RETRIES: Final = 50
"""Held-out retries below which nothing is judged."""
MIN_FOLDS: Final = 5
"""Groups of sessions below which nothing is known of the noise."""
HELD_SHARE: Final = 0.2
"""Of all retries, what is held out at least, up to `HELD_RETRIES`: days that bring few judge together."""
HELD_RETRIES: Final = 200
HELD_SESSIONS: Final = 1 / 3
"""The same of the retries of the only day, whose sessions are held out."""
TRUSTED_HALF_LIVES: Final = 3
"""How far back the days reach that a new model must not be worse on than their base rate; the newest `APART` are none of them."""


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
        if not self.whole:
            return []
        # Bad days that agree with each other are fitted on and judge only if they lie on both sides of the oldest day that judges.
        found = trusted_of(self.fitted, self.first, half_life_days)
        return found if labelled_in(found) else trusted_of(self.fitted, self.day, half_life_days)


def split_of(cells: Sequence[Cell], notes: list[str] | None = None) -> Split:
    """
    Returns the newest days with enough labels to be judged against all before; of one day, a third of its sessions.

    They hold a fifth of the retries, at least 50 and no more than 200 if they can, of five groups of sessions at least.
    One day that has both is held out alone. Remarks about that go to *notes*.
    """
    notes = [] if notes is None else notes
    by_day: dict[int, float] = {}
    groups: dict[int, set[int]] = {}
    for cell in cells:
        if cell.day != UNDATED:
            by_day[cell.day] = by_day.get(cell.day, 0.0) + cell.n
            if cell.n > 0:
                groups.setdefault(cell.day, set()).add(_group(cell))
    newest = max(by_day, default=UNDATED)
    days = sorted((day for day, n in by_day.items() if n > 0), reverse=True)
    if not days:
        what = "have no times" if newest == UNDATED else "have no labelled failures with a time"
        notes.append(f"the records {what}: there is nothing to judge a model by")
        return Split(list(cells), [], UNDATED, UNDATED, whole=False)
    total = sum(by_day.values())
    wanted = max(MIN_RETRIES, min(HELD_SHARE * total, HELD_RETRIES))
    first, count, found = days[0], by_day[days[0]], set(groups[days[0]])
    for day in days[1:]:
        # What is left to fit on must not be less than what judges it.
        if (count >= wanted and len(found) >= MIN_FOLDS) or count + by_day[day] > total / 2:
            break
        first, count = day, count + by_day[day]
        found |= groups[day]
    before = [cell for cell in cells if cell.day < first]
    if labelled_in(before) and sum(cell.s for cell in before) > 0:
        if first != newest:
            notes.append(f"judged by {shown(first)} to {shown(days[0])}, with {count:.0f} labelled failures")
        held = [cell._replace(fold=_group(cell)) for cell in cells if cell.day >= first]
        return Split(before, held, days[0], first, whole=True)
    day = days[0]
    chosen = _sessions(cell for cell in cells if cell.day == day)
    held = [cell for cell in cells if cell.day == day and cell.fold in chosen]
    kept = [cell for cell in cells if cell.day < day or (cell.day == day and cell.fold not in chosen)]
    what = "a third of its sessions is" if held else "it has too few sessions for some to be"
    notes.append(f"{shown(day)} is the only day with labelled failures: {what} held out")
    return Split(kept, held, day, day, whole=False)


def trusted_of(fitted: Sequence[Cell], until: int, half_life_days: float) -> list[Cell]:
    """
    The *fitted* cells that are older than the days up to *until*, which may be bad together, and recent enough to tell of today.
    """
    before = [cell for cell in fitted if cell.day <= until - APART]
    days = sorted({cell.day for cell in before if cell.n > 0}, reverse=True)
    trusted: list[Cell] = []
    for day in days:
        # After a pause, or after days of the future, what is known is older than that; what is little reaches further back.
        if day < days[0] - TRUSTED_HALF_LIVES * half_life_days and sum(cell.n for cell in trusted) >= MIN_RETRIES:
            break
        trusted += [cell for cell in before if cell.day == day]
    return trusted


def labelled_in(cells: Iterable[Cell]) -> bool:
    """
    Returns whether there is a labelled failure among *cells*.
    """
    return any(cell.n > 0 for cell in cells)


def shown(day: int) -> str:
    """
    Returns a day as a date.
    """
    from datetime import UTC, datetime

    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def _sessions(cells: Iterable[Cell]) -> set[int]:
    """
    Returns the groups of sessions that judge: a third of the retries of *cells*, not more than what is left to fit on.
    """
    n: dict[int, float] = {}
    for cell in cells:
        if cell.fold >= 0 and cell.n > 0:
            n[cell.fold] = n.get(cell.fold, 0.0) + cell.n
    total = sum(n.values())
    # What cannot judge is better fitted on.
    wanted = max(HELD_SESSIONS * total, MIN_RETRIES if total >= 2 * MIN_RETRIES else 0.0)
    chosen: set[int] = set()
    # The smallest make five if the first ones do not.
    for order in (sorted(n), sorted(n, key=lambda fold: (n[fold], fold))):
        chosen, count = set(), 0.0
        for fold in order:
            if (count < wanted or len(chosen) < MIN_FOLDS) and count + n[fold] <= total / 2:
                chosen.add(fold)
                count += n[fold]
        if len(chosen) >= MIN_FOLDS:
            break
    return chosen


def _group(cell: Cell) -> int:
    """
    The group of sessions of a cell; a day that does not know them is one by itself.
    """
    return cell.fold if cell.fold >= 0 else FOLDS + cell.day
