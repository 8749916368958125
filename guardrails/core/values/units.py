"""
Durations, sizes and globs as people write them in a policy, read into plain values.

A duration is `500ms`, `30s`, `10m`, `24h`, `7d`, or a bare number of seconds. A size is `512B`, `64KiB`, `4MiB`,
`1GiB`, or a bare number of bytes. `64KB` is refused: it means 64,000 to some and 65,536 to others.
"""

import datetime
import math
import re

from collections.abc import Callable, Mapping
from decimal import Decimal
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Final, Literal, get_args

from guardrails.core.values.names import own_name
from guardrails.core.values.schema import FromText


MILLISECONDS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_DURATION_MS: Final = 36_500 * MILLISECONDS["d"]
"""A hundred years: longer is a slip of the keyboard, and sums must stay far below 64 bits."""
DURATION_PATTERN: Final = r"^[0-9]{1,15}(\.[0-9]{1,9})?(ms|s|m|h|d)$"

_BYTES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MAX_BYTES: Final = 1 << 50
_SIZE_PATTERN: Final = r"^[0-9]{1,15}(\.[0-9]{1,9})?(B|KiB|MiB|GiB)$"


def duration_ms(value: object) -> int:
    """
    Returns *value* as whole milliseconds: text with a unit, or a number of seconds.

    Not idempotent, as the answer is in another unit than a bare number is read in: a setting that is validated
    again keeps `duration_s`. Raises ValueError for anything else, for less than nothing, for parts of a millisecond
    and for more than a hundred years.
    """
    words = "a duration: write 500ms, 30s, 10m, 24h or 7d"
    return _whole(value, DURATION_PATTERN, MILLISECONDS, 1_000, MAX_DURATION_MS, words)


def duration_s(value: object) -> float:
    """
    Returns *value* as seconds, exact to the millisecond: any form that `duration_ms` reads, and its own answers
    unchanged.

    Raises ValueError as `duration_ms` does.
    """
    return duration_ms(value) / 1_000


def byte_size(value: object) -> int:
    """
    Returns *value* as a number of bytes: text with a binary unit, or a whole number; its own answers unchanged.

    Raises ValueError for anything else, for parts of a byte and for more than 2^50 bytes.
    """
    return _whole(value, _SIZE_PATTERN, _BYTES, 1, _MAX_BYTES, "a size: write 65536, 512B, 64KiB, 4MiB or 1GiB")


def _whole(value: object, form: str, units: Mapping[str, int], bare: int, most: int, words: str) -> int:
    """
    Returns *value*, text of the *form* or a number of *bare* units, in the smallest of *units*, at *most* so many. Raises
    ValueError with the *words* for what is wanted.
    """
    exact = Decimal(-1)
    if isinstance(value, str) and (match := re.fullmatch(form, value)):
        exact = Decimal(value.removesuffix(match[2])) * units[match[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        exact = Decimal(str(value)) * bare
    if not 0 <= exact <= most or exact % 1:
        raise ValueError(f"not {words}, got {'nothing' if value is None else f'`{value!s:.40}`'}")
    return int(exact)


def _of_text(parse: Callable[[object], float], kind: str, form: str) -> FromText:
    """
    Returns the mark of a setting that is a number of a JSON *kind*, or text of a *form*.
    """
    return FromText(parse, {"anyOf": [{"type": kind, "minimum": 0}, {"type": "string", "pattern": form}]})


Duration = Annotated[float, _of_text(duration_s, "number", DURATION_PATTERN)]
"""A setting in seconds that may be written `30s`; constraints such as `Gt(0)` are in seconds."""
ByteSize = Annotated[int, _of_text(byte_size, "integer", _SIZE_PATTERN)]
"""A setting in bytes that may be written `64KiB`; constraints are in bytes."""


def glob(value: object) -> object:
    """
    Returns *value* if it is no text, or a glob that some name can match.

    Raises ValueError for others: an empty one, one whose `[` is never closed, one with an empty range.
    """
    if not isinstance(value, str) or (value and "[" not in value):
        return value
    if "(?!)" in translate(value) or not re.fullmatch(r"(?:[^[]|\[!?+\]?+[^]]*\])+", value):
        fix = "write `*` for every name, `[[]` for a bracket"
        raise ValueError(f"a glob that matches no name: {fix}, got `{value:.40}`")
    return value


Glob = Annotated[str, FromText(glob, {"type": "string", "minLength": 1})]
"""A pattern of names with `*`, `?` and `[...]` (fnmatch); after `**/` it is one of the tool's own name, see `own_name`."""
_OWN: Final = "**/"
SIGNS: Final = frozenset("*?[")


@lru_cache(maxsize=256)
def matcher(globs: tuple[str, ...]) -> Callable[[str], object]:
    """
    Returns a function that finds a name that any of the *globs* matches, and gives None for others. It is one regular
    expression, for the globs may be dozens. Globs that begin with `**/` have one more, for a tool's own name.
    """
    own = [glob.removeprefix(_OWN) for glob in globs if glob.startswith(_OWN)]
    whole, bare = (re.compile("|".join(map(translate, some)) or "(?!)").match for some in (globs, own))
    return (lambda name: whole(name) or bare(own_name(name))) if own else whole


Calendar = Literal["day", "week", "month"]
CALENDAR: Final = get_args(Calendar)
UTC: Final = "UTC"
_PARTS: Final = 24
"""A period that slides does so by this part of itself."""


def _period(value: object) -> object:
    return value if value in CALENDAR else duration_s(value)


_SCHEMA: Final = {"anyOf": [{"enum": [*CALENDAR]}, {"type": "number"}, {"type": "string", "pattern": DURATION_PATTERN}]}
Per = Annotated[float | Calendar, FromText(_period, _SCHEMA)]
"""A setting: `1h` slides, seconds if it is a bare number; `day`, `week` (from Monday) and `month` are those of the calendar."""


@lru_cache(maxsize=256)  # Each call asks several times, and a calendar takes longer than a rule.
def _begun(quarter: int, per: float | str, zone: datetime.tzinfo) -> int:
    """
    Returns when the day, week or month began that a *quarter* of an hour since 1970 is in: no calendar changes its day within one.
    """
    day = datetime.datetime.fromtimestamp(quarter * 900, zone)
    day = day.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if per == "week":
        day -= datetime.timedelta(days=day.weekday())
    return round((day.replace(day=1) if per == "month" else day).timestamp() * 1_000)


class Period:
    """
    A period: the last *per* seconds; the day, week or month of the calendar in the time *zone*; all time, if *per* is None.

    Raises ValueError if there is no such zone, or the period has no length.
    """

    def __init__(self, per: float | str | None, zone: str = UTC) -> None:
        self.per, self.zone = per, zone
        self._zone: datetime.tzinfo = datetime.UTC
        try:
            if zone != UTC:
                from zoneinfo import ZoneInfo  # which takes as long as to decide a call

                self._zone = ZoneInfo(zone)
        except (LookupError, OSError, ValueError):
            raise ValueError(f"no time zone `{zone:.60}` is known here: write one such as `Europe/Berlin`") from None
        self._slides = 0 if per is None or isinstance(per, str) else round(per * 1_000)
        if per is not None and not isinstance(per, str) and self._slides == 0:
            raise ValueError("a period is longer than 0s; without it all time counts")

    def since(self, now_ms: int) -> int:
        """
        Returns the time from which on amounts count at *now_ms*.
        """
        if self._slides:
            return now_ms - self._slides + 1
        if self.per is None:
            return -1
        return _begun(now_ms // 900_000, self.per, self._zone)

    def part(self, at_ms: int) -> int:
        """
        Returns the number of the part of the period that *at_ms* is in: amounts of one part may be kept together, as of its latest time.
        """
        return at_ms * _PARTS // self._slides if self._slides else self.since(at_ms)

    def __str__(self) -> str:
        if self.per is None:
            return ""
        if not self._slides:
            return f" a {self.per}, {self.zone}"
        unit = next(unit for unit in reversed(MILLISECONDS) if self._slides % MILLISECONDS[unit] == 0)
        return f" within {self._slides // MILLISECONDS[unit]}{unit}"
