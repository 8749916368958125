"""
The wait that the other side asked for, in milliseconds.

Only unambiguous forms are read: `retry-after-ms`, `Retry-After` (seconds or an HTTP date, RFC 9110 section 10.2.3), a
`retry_after` attribute in seconds. The reset of a rate limit counts if the limit is used up. It is seconds since 1970
of GitHub, a duration with units of OpenAI, seconds of RateLimit-Reset, and a time of RFC 3339 of Anthropic. A text may
also say either in words. Negative values and values that are no number are ignored; more than a day counts as a day.
"""

from math import isfinite
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .exception_facts import attribute, chain, headers_of, status_of, text_of


MAX_WAIT_MS: Final = 86_400_000
"""A day, in milliseconds."""

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# IMF-fixdate and RFC 850 `06-Nov-94`, and asctime: the three forms that RFC 9110 section 5.6.7 has every recipient accept.
_DATE: Final = pattern(r"[a-z]{3,9}, (\d{1,2})[ -]([a-z]{3})[ -](\d{4}|\d\d) (\d\d):(\d\d):(\d\d) (?:gmt|utc|[+-]0000)")
_ASCTIME: Final = pattern(r"[a-z]{3} ([a-z]{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})")
_ISO: Final = pattern(r"\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:z|[+-]\d\d:?\d\d)")
_DURATION: Final = pattern(
    r"(?:(\d{1,3}) ?d(?:ays?)?(?![a-z]))? ?(?:(\d{1,4}) ?h(?:(?:ou)?rs?)?(?![a-z]))? ?(?:(\d{1,5}) ?m(?:in(?:ute)?s?)?(?![a-z]))? ?"
    r"(?:(\d{1,6}(?:\.\d{1,9})?) ?s(?:ec(?:ond)?s?)?(?![a-z]))? ?(?:(\d{1,9}(?:\.\d{1,9})?) ?(?:ms|milliseconds?)(?![a-z]))?"
)
_VALUE_CHARS: Final = 64
_EPOCH: Final = pattern(r"[1-9]\d{9}(?:\d{3})?")
_LIMITED: Final = frozenset({403, 429, 503})
"""Statuses of which the reset of a limit tells, though nobody says how much of it remains."""
_SAYS: Final = pattern(
    r"""(?:retry[-_ ]?after|limit-reset(?:-[a-z]{1,20})?|retry[-_ ]?delay)(?:[-_](ms|s|seconds))?["']?(?: ?[:=] ?["']?|\ )"""
    r"""([a-z]{3,9}, [\w :-]{20,30}(?:gmt|utc)|\d{4}-\d\d-\d\d[t ][\d:.]{8,18}(?:z|[+-]\d\d:?\d\d)|[\d.]{1,16}[dhms][\ddhms]{0,15}|[\d.]{0,16}\d)"""
    r"""(?=[.,;]?\s*$|[.,;]?[\r\n]|["',;)}\]])"""
)
"""A header, or a field, as text."""
_ASKS: Final = pattern(
    r"(?:\b(?:re)?try(?: it)?(?: again)?|\bavailable(?: again)?|\bresets?|(?:^|please |must |should |to |and |then |[,.;:] )wait)"
    r"(?: (?:in|after|for|about|at least|another))* (an? (?=[hms])|(?=\d))"
)
_TEXT_CHARS: Final = 4096
_SECONDS_DIGITS: Final = 10
_TWO_DIGIT_YEAR: Final = 100


def retry_after_ms_of(exc: BaseException, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that *exc* or one of its causes carries, in milliseconds, 0 to a day. Returns None if it carries
    none.

    A date says how long to wait only with *now_ms*, milliseconds since 1970; without it dates are ignored.
    """
    try:
        return next((wait for link in chain(exc) if (wait := _own_wait(link, now_ms)) is not None), None)
    except Exception:  # noqa: BLE001
        return None


def wait_ms(value: object, now_ms: int | None = None) -> int | None:
    """
    Returns *value* of a `Retry-After` in milliseconds: seconds as a number or text, or an HTTP date.
    """
    if isinstance(value, str):
        text = value.strip().lower()
        if not 0 < len(text) <= _VALUE_CHARS:
            return None
        at_ms = _date_ms(text)
        if at_ms is not None:
            return None if now_ms is None else min(max(0, at_ms - now_ms), MAX_WAIT_MS)
        if text[-1].isalpha() and text[0].isdecimal():
            return _duration_ms(text)
        value = text
    return _capped(value, 1000)


def _own_wait(exc: BaseException, now_ms: int | None) -> int | None:
    headers = headers_of(exc)
    waits = (
        _capped(headers.get("retry-after-ms"), 1),
        wait_ms(headers.get("retry-after"), now_ms),
        _reset(headers, status_of(exc), now_ms),
        _capped(attribute(exc, "retry_after_ms"), 1),
        _attribute_wait(attribute(exc, "retry_after"), now_ms),
        wait_in_text(text_of(exc), now_ms),
    )
    return next((wait for wait in waits if wait is not None), None)


def _attribute_wait(value: Any, now_ms: int | None) -> int | None:
    seconds = attribute(value, "total_seconds")
    return wait_ms(seconds() if callable(seconds) else value, now_ms)


def _reset(headers: dict[str, str], status: int | None, now_ms: int | None) -> int | None:
    """
    Returns when a limit that is used up begins anew; of several the last.
    """
    waits: list[int | None] = []
    for name, value in headers.items():
        if "reset" in name and "ratelimit" in name.replace("-limit", "limit"):
            remains = headers.get(name.replace("reset", "remaining"))
            if remains == "0" or (remains is None and status in _LIMITED):
                waits.append(reset_ms(value, now_ms))
    return max((wait for wait in waits if wait is not None), default=None)


def reset_ms(value: str, now_ms: int | None) -> int | None:
    """
    Returns *value* of an `x-ratelimit-reset` in milliseconds from now: seconds, seconds or milliseconds since 1970, a
    duration, a date.
    """
    if _EPOCH.fullmatch(value) is None:
        return wait_ms(value, now_ms)
    at_ms = int(value) * (1 if len(value) > _SECONDS_DIGITS else 1000)
    return None if now_ms is None else min(max(0, at_ms - now_ms), MAX_WAIT_MS)


def wait_in_text(text: str, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that a failure asks for in words, in milliseconds: `try again in 20s`, `Please wait 2 minutes`,
    `Retry-After: 30`. Returns None if it asks for none.
    """
    head = text[:_TEXT_CHARS].lower()
    if (found := _SAYS.search(head)) is not None:
        return reset_ms(found[2] + ("ms" if found[1] == "ms" else ""), now_ms)
    if (found := _ASKS.search(head)) is None:
        return None
    amount = _DURATION.match(f"{'1 ' if found[1] else ''}{head[found.end() : found.end() + _VALUE_CHARS]}")
    return None if amount is None else _duration_ms(amount[0].strip())


def _duration_ms(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        return None

    days, hours, minutes, seconds, ms = (float(part or 0) for part in found.groups())
    return _capped((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + ms, 1)


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

    if _ISO.fullmatch(text):
        try:
            return int(datetime.fromisoformat(text.upper()).timestamp() * 1000)
        except ValueError:
            return None
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
