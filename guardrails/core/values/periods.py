"""
Periods in which amounts are counted: the last hour, or a day of the calendar.
"""

from datetime import tzinfo
from typing import Annotated, Final, Literal

from .schema import FromText
from .units import DURATION_PATTERN, MILLISECONDS, duration_s


CALENDAR: Final = ("day", "week", "month")
UTC: Final = "UTC"
_PARTS: Final = 24
"""A period that slides does so by this part of itself."""


def _period(value: object) -> object:
    return value if value in CALENDAR else duration_s(value)


def _zone_of(name: str) -> tzinfo:
    # Its import takes as long as to decide a call.
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


Calendar = Literal["day", "week", "month"]
_SCHEMA: Final = {"anyOf": [{"enum": [*CALENDAR]}, {"type": "number"}, {"type": "string", "pattern": DURATION_PATTERN}]}
Per = Annotated[float | Calendar, FromText(_period, _SCHEMA)]
"""A setting: `1h` slides, seconds if it is a bare number; `day`, `week` (from Monday) and `month` are those of the calendar."""


class Period:
    """
    A period: the last *per* seconds; the day, week or month of the calendar in the time *zone*; all time, if *per* is None.

    Raises ValueError if there is no such zone.
    """

    def __init__(self, per: float | str | None, zone: str = UTC) -> None:
        from datetime import UTC as utc  # noqa: N811  the name is taken by its text

        self.per, self.zone = per, zone
        try:
            self._zone = utc if zone == UTC else _zone_of(zone)
        except (LookupError, OSError, ValueError):
            raise ValueError(f"no time zone `{zone:.60}` is known here: write one such as `Europe/Berlin`") from None
        self._slides = 0 if per is None or isinstance(per, str) else round(per * 1_000)
        self._present = (0, 0)

    def since(self, now_ms: int) -> int:
        """
        Returns the time from which on amounts count at *now_ms*.
        """
        if self._slides:
            return now_ms - self._slides + 1
        if self.per is None:
            return -1
        start, until = self._present
        if not start <= now_ms < until:
            start = self._start(now_ms)
            # No calendar changes its day within a quarter of an hour.
            self._present = start, now_ms - now_ms % 900_000 + 900_000
        return start

    def part(self, at_ms: int) -> int:
        """
        Returns the number of the part of the period that *at_ms* is in: amounts of one part may be kept together, as of its latest time.
        """
        return at_ms * _PARTS // self._slides if self._slides else self.since(at_ms)

    def _start(self, now_ms: int) -> int:
        from datetime import datetime, timedelta

        day = datetime.fromtimestamp(now_ms / 1_000, self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
        if self.per == "week":
            day -= timedelta(days=day.weekday())
        return round((day.replace(day=1) if self.per == "month" else day).timestamp() * 1_000)

    def __str__(self) -> str:
        if self.per is None:
            return ""
        if not self._slides:
            return f" a {self.per}, {self.zone}"
        unit = next(unit for unit in reversed(MILLISECONDS) if self._slides % MILLISECONDS[unit] == 0)
        return f" within {self._slides // MILLISECONDS[unit]}{unit}"
