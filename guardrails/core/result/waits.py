"""
The wait that the other side asked for, in milliseconds: 0 to a day.

Headers and fields: `retry-after-ms`, `x-ms-retry-after-ms`, `Retry-After`, the reset of a limit that is used up (seconds, seconds or
milliseconds since 1970, a duration, a date), `RateLimit: ...;t=25`. Words: `try again in 20s`, `resets at 2026-01-01T10:00:00Z`.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .content import at
from .exceptions import chain, headers_of, status_of, text_of


MAX_WAIT_MS: Final = 86_400_000
"""A day, in milliseconds."""
_DATE: Final = (
    r"(?:\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)? ?(?:z|utc|gmt|[+-]\d\d:?\d\d)?|[a-z]{3} [a-z]{3} +\d{1,2} \d\d:\d\d:\d\d \d{4}"
    r"|(?:[a-z]{3,9}, ?)?\d{1,2}[ -][a-z]{3}[ -]\d{2,4} \d\d:\d\d:\d\d(?: (?:gmt|utc|[+-]\d{4}))?)"
)
_UNITS: Final = {
    "d(?:ays?)?": 86_400_000,
    "h(?:(?:ou)?rs?)?": 3_600_000,
    "m(?:in(?:ute)?s?)?": 60_000,
    "s(?:ec(?:ond)?s?)?": 1000,
}
_DURATION: Final = pattern(
    " ?".join(rf"(?:(\d{{1,9}}(?:\.\d{{1,9}})?) ?{unit}(?![a-z]))?" for unit in (*_UNITS, "(?:ms|milliseconds?)"))
)
_IS_DATE: Final = pattern(_DATE)
_FIELD: Final = pattern(
    r"""(?:(?:x-ms-)?retry[-_ ]?after|limit-reset(?:-[a-z]{1,20})?|retry[-_ ]?delay)(?:[-_](ms|s|seconds))?["']?(?: ?[:=] ?["']?|\ )"""
    rf"""({_DATE}|[\d.]{{1,16}}[dhms][\ddhms]{{0,15}}|[\d.]{{0,16}}\d)(?=[.,;]?\s*$|[.,;]?[\r\n]|["',;)}}\]])"""
)
"""A header, or a field, as text."""
_LIMIT: Final = pattern(r"""ratelimit["']?:[^\n]{0,200}?[;,] ?(?:t|reset)=(\d{1,9})""")
_ASKS: Final = pattern(
    r"(?:\b(?:re)?try(?: it)?(?: again)?|\bavailable(?: again)?|\bresets?|(?:^|please |must |should |to |and |then |[,.;:] )wait)"
    r"(?: (?:in|after|for|about|at least|another))* (an? (?=[hms])|(?=\d))"
)
_RESETS: Final = pattern(
    rf"\b(?:resets?|available(?: again)?|(?:re)?try(?: again)?|renews?|wait)(?: (?:at|on|after|until))+:? ({_DATE})"
)


def wait_of(exc: BaseException, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that *exc* or one of its causes carries. Dates and times since 1970 count from *now_ms*, and not without it.
    """
    with suppress(Exception):
        for link in chain(exc):
            delay = at(link, "retry_after")
            seconds = at(delay, "total_seconds")
            said = {
                "retry-after-ms": at(link, "retry_after_ms"),
                "retry-after": seconds() if callable(seconds) else delay,
            }
            headers = wait_in_fields(headers_of(link), status_of(link), now_ms)
            waits = (headers, wait_in_fields(said, None, now_ms), wait_in_text(text_of(link), now_ms))
            if (wait := next((one for one in waits if one is not None), None)) is not None:
                return wait
    return None


def wait_in_fields(fields: Mapping[str, Any], status: int | None, now_ms: int | None) -> int | None:
    """
    Returns the wait that headers, or fields, ask for, by names in small letters with hyphens; of several limits that are used up the last
    counts.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms", "retry-after", "retry-after-seconds", "retry-delay"):
        if (wait := wait_ms(fields.get(name), now_ms, 1 if name.endswith("ms") else 1000)) is not None:
            return wait
    waits: list[int | None] = []
    for name, value in fields.items():
        if name == "ratelimit":
            waits.append(wait_in_text(f"ratelimit: {value}", now_ms))
        elif "reset" in name and "ratelimit" in name.replace("-limit", "limit"):
            left = fields.get(name.replace("reset", "remaining"))
            used_up = str(left) == "0" or (left is None and status in (403, 429, 503))
            waits.append(wait_ms(value, now_ms) if used_up else None)
    return max((wait for wait in waits if wait is not None), default=None)


def wait_ms(value: Any, now_ms: int | None = None, unit: int = 1000) -> int | None:
    """
    Returns *value* in milliseconds: a number of so many *unit*s, as text too, a duration, a date, or a time since 1970.
    """
    text = value.strip().lower() if isinstance(value, str) and len(value) <= 64 else ""
    if text and _IS_DATE.fullmatch(text):
        return _until(text, now_ms)
    if text[-1:].isalpha() and text[:1].isdecimal():
        return _lasting(text)
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value)[:99]:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not isfinite(number) or number < 0:
        return None
    if 1e9 <= number < 1e14 and (unit == 1000 or number >= 1e12):
        # Seconds or milliseconds since 1970, which are no duration.
        return None if now_ms is None else _capped(number * (1 if number >= 1e11 else 1000) - now_ms)
    return _capped(number * unit)


def wait_in_text(text: str, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that a failure asks for in words, or as a field that its text shows.
    """
    head = text[:4096].lower()
    if (found := _FIELD.search(head)) is not None:
        return wait_ms(found[2] + ("ms" if found[1] == "ms" else ""), now_ms)
    if (found := _LIMIT.search(head)) is not None:
        return wait_ms(found[1])
    if (found := _RESETS.search(head)) is not None:
        return _until(found[1], now_ms)
    if (found := _ASKS.search(head)) is None:
        return None
    amount = _DURATION.match(f"{'1 ' if found[1] else ''}{head[found.end() : found.end() + 64]}")
    return None if amount is None else _lasting(amount[0].strip())


def _lasting(text: str) -> int | None:
    found = _DURATION.fullmatch(text) if text else None
    units = (*_UNITS.values(), 1)
    return (
        None
        if found is None
        else _capped(sum(float(part or 0) * ms for part, ms in zip(found.groups(), units, strict=True)))
    )


def _until(text: str, now_ms: int | None) -> int | None:
    with suppress(ValueError, OverflowError):
        iso = text.replace("utc", "z").replace("gmt", "z").replace(" z", "z").upper()
        then = datetime.fromisoformat(iso) if text[:4].isdecimal() else parsedate_to_datetime(text)
        at_ms = then.replace(tzinfo=then.tzinfo or UTC).timestamp() * 1000
        return None if now_ms is None else _capped(at_ms - now_ms)
    return None


def _capped(ms: float) -> int:
    return int(min(max(0, ms), MAX_WAIT_MS))
