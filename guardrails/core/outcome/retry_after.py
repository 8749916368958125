"""
How long the other side asked to wait, in milliseconds.

Only what is unambiguous is read: `retry-after-ms`, `Retry-After` (seconds or an HTTP date, RFC 9110 section 10.2.3),
a `retry_after` attribute in seconds, and the reset of a rate limit that is said to be used up (GitHub: seconds since
1970; OpenAI: a duration with units). What is negative or no number is ignored, more than a day counts as a day.
"""

from math import isfinite
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .exception_facts import attribute, chain, headers_of


MAX_WAIT_MS: Final = 86_400_000
"""A day, in milliseconds."""

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# IMF-fixdate and RFC 850 `06-Nov-94`, and asctime: the three forms that RFC 9110 section 5.6.7 has every recipient accept.
_DATE: Final = pattern(r"[a-z]{3,9}, (\d{1,2})[ -]([a-z]{3})[ -](\d{4}|\d\d) (\d\d):(\d\d):(\d\d) (?:gmt|utc|[+-]0000)")
_ASCTIME: Final = pattern(r"[a-z]{3} ([a-z]{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})")
_DURATION: Final = pattern(r"(?:(\d{1,3})h)?(?:(\d{1,4})m(?!s))?(?:(\d{1,6}(?:\.\d{1,6})?)s)?(?:(\d{1,9})ms)?")
_VALUE_CHARS: Final = 64
_EPOCH: Final = pattern(r"[1-9]\d{9,10}")
_TWO_DIGIT_YEAR: Final = 100


def retry_after_ms_of(exc: BaseException, now_ms: int | None = None) -> int | None:
    """
    The wait that *exc* or one of its causes carries, in milliseconds, 0 to a day; None where it carries none.

    A date says how long to wait only with *now_ms*, milliseconds since 1970; without it dates are ignored.
    """
    try:
        return next((wait for link in chain(exc) if (wait := _own_wait(link, now_ms)) is not None), None)
    except Exception:  # noqa: BLE001
        return None


def wait_ms(value: object, now_ms: int | None = None) -> int | None:
    """
    *value* of a `Retry-After` in milliseconds: seconds as a number or text, or an HTTP date.
    """
    if isinstance(value, str):
        text = value.strip().lower()
        if not 0 < len(text) <= _VALUE_CHARS:
            return None
        at_ms = _date_ms(text)
        if at_ms is not None:
            return None if now_ms is None else min(max(0, at_ms - now_ms), MAX_WAIT_MS)
        value = text
    return _capped(value, 1000)


def _own_wait(exc: BaseException, now_ms: int | None) -> int | None:
    headers = headers_of(exc)
    waits = (
        _capped(headers.get("retry-after-ms"), 1),
        wait_ms(headers.get("retry-after"), now_ms),
        _reset(headers, now_ms),
        _capped(attribute(exc, "retry_after_ms"), 1),
        _attribute_wait(attribute(exc, "retry_after"), now_ms),
    )
    return next((wait for wait in waits if wait is not None), None)


def _attribute_wait(value: Any, now_ms: int | None) -> int | None:
    seconds = attribute(value, "total_seconds")
    return wait_ms(seconds() if callable(seconds) else value, now_ms)


def _reset(headers: dict[str, str], now_ms: int | None) -> int | None:
    """
    When a limit of which nothing remains starts anew; of several the last.
    """
    waits = [
        _duration_ms(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    reset = headers.get("x-ratelimit-reset", "")
    if now_ms is not None and headers.get("x-ratelimit-remaining") == "0" and _EPOCH.fullmatch(reset):
        waits.append(min(max(0, int(reset) * 1000 - now_ms), MAX_WAIT_MS))
    return max((wait for wait in waits if wait is not None), default=None)


def _duration_ms(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        return None

    hours, minutes, seconds, ms = (float(part or 0) for part in found.groups())
    return _capped((hours * 60 + minutes) * 60 + seconds + ms / 1000, 1000)


def _capped(value: object, factor: int) -> int | None:
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    # Refuses `1_000` and the like, which float() takes and HTTP does not.
    if not isfinite(number) or number < 0 or (isinstance(value, str) and "_" in value):
        return None
    return int(min(number * factor, MAX_WAIT_MS))


def _date_ms(text: str) -> int | None:
    from datetime import UTC, datetime

    if found := _DATE.fullmatch(text):
        day, month, year, *clock = found.groups()
    elif found := _ASCTIME.fullmatch(text):
        month, day, *clock, year = found.groups()
    else:
        return None

    full_year = int(year)
    if full_year < _TWO_DIGIT_YEAR:
        full_year += 2000 if full_year < 70 else 1900
    try:
        hour, minute, second = (int(part) for part in clock)
        at = datetime(full_year, _MONTHS.index(month) + 1, int(day), hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1000
