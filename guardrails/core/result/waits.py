"""
The wait that the other side asked for, in milliseconds: 0 to a day.

Headers and fields: `retry-after-ms`, `x-ms-retry-after-ms`, `Retry-After`, the reset of a limit that is used up (seconds, seconds or
milliseconds since 1970, a duration, a date), `RateLimit: ...;t=25`. Words: `try again in 20s`, `resets at 2026-01-01T10:00:00Z`.
"""

import re

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final


MAX_WAIT_MS: Final = 86_400_000
"""A day, in milliseconds."""
_DATE: Final = r"""(?:\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)? ?(?:z|utc|gmt|[+-]\d\d:?\d\d)?|[a-z]{3} [a-z]{3} +\d{1,2} \d\d:\d\d:\d\d \d{4}
|(?:[a-z]{3,9}, ?)?\d{1,2}[ -][a-z]{3}[ -]\d{2,4} \d\d:\d\d:\d\d(?: (?:gmt|utc|[+-]\d{4}))?)""".replace("\n", "")
_UNITS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "mil": 1}
_AMOUNTS: Final = r"""(?:(?:\d{1,9}(?:\.\d{1,9})? ?|an? )(?:ms|milliseconds?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z]) ?){1,8}"""
_ASKS: Final = re.compile(
    rf"""(?:retry[-_ ]?(?:after|delay)(?:[-_](?P<unit>ms|s|seconds))?|limit-reset(?:-[a-z]{{1,20}})?|ratelimit["']?:[^\n]{{0,200}}?[;,] ?(?:t|reset)(?==))
["']?(?: ?[:=] ?["']?|\ )(?P<field>{_DATE}|{_AMOUNTS}|[\d.]{{0,16}}\d)(?=[.,;]?\s*$|[.,;]?[\r\n]|["',;)}}\]])
|(?:\b(?:re)?try(?: it)?(?: again)?|\bavailable(?: again)?|\b(?:resets?|renews?)|(?:^|please |must |should |to |and |then |[,.;:] )wait)
(?: (?:in|after|for|about|at|on|until|at least|another))*:? (?P<words>{_DATE}|{_AMOUNTS})""".replace("\n", "")
)
"""A header or a field as text, else words."""
_ASKING: Final = ("try", "wait", "reset", "renew", "available", "ratelimit")
"""One of them is in all that asks for a wait."""


def wait_in_fields(fields: Mapping[str, Any], status: int | None, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that headers, or fields, ask for, by names in small letters with hyphens; of several limits that are used up the last
    counts.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms", "retry-after", "retry-after-seconds", "retry-delay"):
        if (wait := wait_ms(fields.get(name), now_ms, 1 if name.endswith("ms") else 1000)) is not None:
            return wait
    waits = [wait_in_text(f"ratelimit: {fields.get('ratelimit', fields.get('rate-limit'))}", now_ms)]
    for name, value in fields.items():
        left = str(fields.get(name.replace("reset", "remaining"), "0" if status in (403, 429, 503) else ""))
        limits = "reset" in name and "ratelimit" in name.replace("-limit", "limit") and left == "0"
        waits.append(wait_ms(value, now_ms) if limits else None)
    return max((wait for wait in waits if wait is not None), default=None)


def wait_ms(value: Any, now_ms: int | None = None, unit: int = 1000) -> int | None:
    """
    Returns *value* in milliseconds: a number of so many *unit*s, as text too, a duration, a date, or a time since 1970.
    """
    text = value.strip().lower()[:65] if isinstance(value, str) else str(value) if type(value) in (int, float) else ""
    if re.fullmatch(_AMOUNTS, text):
        amounts = re.findall(r"([\d.]{1,20}|a)n? ?(ms|mil|[a-z])[a-z]*", text)
        return _capped(sum(float(number.replace("a", "1")) * _UNITS[unit] for number, unit in amounts))
    number = float(text) if re.fullmatch(r"\d{1,20}(?:\.\d{0,20})?(?:e\+?\d{1,3})?", text) else None
    if number is not None and not (1e9 <= number < 1e14 and (unit == 1000 or number >= 1e12)):
        return _capped(number * unit)
    # Seconds or milliseconds since 1970 are no duration.
    until = _moment(text) if number is None else number * (1 if number >= 1e11 else 1000)
    return None if until is None or now_ms is None else _capped(until - now_ms)


def wait_in_text(text: str, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that a failure asks for in words, or as a field that its text shows.
    """
    text = text[:4096].lower()
    match = _ASKS.search(text) if any(map(text.__contains__, _ASKING)) else None
    return match and wait_ms(match["field"] or match["words"], now_ms, 1 if match["unit"] == "ms" else 1000)


def _moment(date: str) -> float | None:
    with suppress(ValueError, OverflowError):
        iso = date.replace("utc", "z").replace("gmt", "z").replace(" z", "z").upper()
        then = datetime.fromisoformat(iso) if date[:4].isdecimal() else parsedate_to_datetime(date)
        return then.replace(tzinfo=then.tzinfo or UTC).timestamp() * 1000 if re.fullmatch(_DATE, date) else None
    return None


def _capped(ms: float) -> int:
    return int(min(max(0, ms), MAX_WAIT_MS))
