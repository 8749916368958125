"""
Bins of time and of position, few enough to be read.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from guardrails.offline.judge.result import Stop


HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
MOST: Final = 92
"""Columns of a chart: a quarter of days."""
_EDGES: Final = (0, 5, *(m * 10**e for e in range(1, 12) for m in (1, 2, 5)))
_MONDAY: Final = 4 * DAY
"""1970-01-05, the first Monday there is."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = 253_402_300_799_000
"""The last second of 9999, the last that has a date."""


class Span(NamedTuple):
    """
    Bins of *width* milliseconds from *start*.
    """

    start: int
    width: int
    bins: int

    @property
    def unit(self) -> str:
        """
        The width of one bin, for a caption.
        """
        names = {HOUR: "hour", DAY: "day", WEEK: "week"}
        return names.get(self.width) or f"{self.width // WEEK} weeks"

    def place(self, at_ms: int) -> int:
        """
        Returns the bin of a time.
        """
        return (_dated(at_ms) - self.start) // self.width

    def label(self, n: int) -> str:
        """
        When bin *n* begins, UTC.
        """
        begin = _EPOCH + timedelta(milliseconds=self.start + n * self.width)
        return begin.strftime("%Y-%m-%d %H:00" if self.width < DAY else "%Y-%m-%d")


def span(times: Iterable[int]) -> Span | None:
    """
    Bins over all *times* (ms since 1970): hours up to two days, then days, weeks, and weeks in powers of two.
    """
    known = [_dated(at) for at in times]
    if not known:
        return None
    first, last = min(known), max(known)
    width = HOUR if last - first < 2 * DAY else DAY
    while True:
        origin = _MONDAY if width >= WEEK else 0
        start = max((first - origin) // width * width + origin, 0)
        bins = (last - start) // width + 1
        if bins <= MOST:
            return Span(start, width, bins)
        width = WEEK if width < WEEK else width * 2


def positions(stops: Iterable[Stop]) -> list[tuple[str, Counter[str]]]:
    """
    Stops by position in their session: bins that grow (0-4, 5-9, 10-19, 20-49, 50-99, ...), each with its codes.
    """
    found: dict[int, Counter[str]] = {}
    for stop in stops:
        place = min(max(bisect_right(_EDGES, stop.call_index) - 1, 0), len(_EDGES) - 2)
        found.setdefault(place, Counter())[stop.code] += 1
    last = max(found, default=-1)
    return [(f"{_EDGES[n]:,}-{_EDGES[n + 1] - 1:,}", found.get(n, Counter())) for n in range(last + 1)]


def _dated(at_ms: int) -> int:
    return min(max(at_ms, 0), _LAST)
