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
_AMOUNT: Final = r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_UNITS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_FIELD: Final = rf"""(?:(?:x-ms-)?retry[-_ ]?after|limit-reset(?:-[a-z]{{1,20}})?|retry[-_ ]?delay)(?:[-_](ms|s|seconds))?["']?(?: ?[:=] ?["']?|\ )
({_DATE}|[\d.]{{1,16}}[dhms][\ddhms]{{0,15}}|[\d.]{{0,16}}\d)(?=[.,;]?\s*$|[.,;]?[\r\n]|["',;)}}\]])""".replace(
    "\n", ""
)
"""A header, or a field, as text."""
_LIMIT: Final = r"""ratelimit["']?:[^\n]{0,200}?[;,] ?(?:t|reset)=(\d{1,9})"""
_ASKS: Final = r"""(?:\b(?:re)?try(?: it)?(?: again)?|\bavailable(?: again)?|\bresets?|(?:^|please |must |should |to |and |then |[,.;:] )wait)
(?: (?:in|after|for|about|at least|another))* (an? (?=[hms])|(?=\d))""".replace("\n", "")
_WORDS: Final = ("try", "wait", "reset", "available", "ratelimit", "renew")
"""One of them is in every text that says a wait."""
_RESETS: Final = rf"\b(?:resets?|renews?|wait|available|(?:re)?try)(?: (?:again|at|on|after|until))+:? ({_DATE})"


def wait_in_fields(fields: Mapping[str, Any], status: int | None, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that headers, or fields, ask for, by names in small letters with hyphens; of several limits that are used up the last
    counts.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms", "retry-after", "retry-after-seconds", "retry-delay"):
        said = fields.get(name)
        if said is not None and (wait := wait_ms(said, now_ms, 1 if name.endswith("ms") else 1000)) is not None:
            return wait
    waits = [wait_in_text(f"ratelimit: {fields['ratelimit']}", now_ms)] if "ratelimit" in fields else []
    for name, value in fields.items():
        left = str(fields.get(name.replace("reset", "remaining"), "0" if status in (403, 429, 503) else ""))
        if "reset" in name and "ratelimit" in name.replace("-limit", "limit") and left == "0":
            waits.append(wait_ms(value, now_ms))
    return max((wait for wait in waits if wait is not None), default=None)


def wait_ms(value: Any, now_ms: int | None = None, unit: int = 1000) -> int | None:
    """
    Returns *value* in milliseconds: a number of so many *unit*s, as text too, a duration, a date, or a time since 1970.
    """
    value = value.total_seconds() if hasattr(value, "total_seconds") else value
    text = value.strip().lower() if isinstance(value, str) else str(value) if type(value) in (int, float) else ""
    if len(text) > 64 or re.fullmatch(_DATE, text):
        return _until(text, now_ms)
    if re.fullmatch(r"\d+(?:\.\d*)?(?:e\+?\d{1,3})?", text) is None:
        return _lasting(text)
    number = float(text)
    if 1e9 <= number < 1e14 and (unit == 1000 or number >= 1e12):
        # Seconds or milliseconds since 1970, which are no duration.
        return None if now_ms is None else _capped(number * (1 if number >= 1e11 else 1000) - now_ms)
    return _capped(number * unit)


def wait_in_text(text: str, now_ms: int | None = None) -> int | None:
    """
    Returns the wait that a failure asks for in words, or as a field that its text shows.
    """
    head = text[:4096].lower()
    if not any(map(head.__contains__, _WORDS)):
        return None
    if (found := re.search(_FIELD, head)) is not None:
        return wait_ms(found[2] + ("ms" if found[1] == "ms" else ""), now_ms)
    if (found := re.search(_LIMIT, head)) is not None:
        return wait_ms(found[1])
    if (found := re.search(_RESETS, head)) is not None:
        return _until(found[1], now_ms)
    if (found := re.search(_ASKS, head)) is None:
        return None
    amount = re.match(rf"(?:{_AMOUNT} ?)+", f"{'1 ' if found[1] else ''}{head[found.end() : found.end() + 64]}")
    return None if amount is None else _lasting(amount[0])


def _lasting(text: str) -> int | None:
    parts = re.findall(_AMOUNT, text) if re.fullmatch(rf"(?:{_AMOUNT} ?)+", text) else []
    waits = [float(number) * _UNITS["ms" if unit[:3] in ("ms", "mil") else unit[0]] for number, unit in parts]
    return _capped(sum(waits)) if waits else None


def _until(text: str, now_ms: int | None) -> int | None:
    with suppress(ValueError, OverflowError):
        iso = text.replace("utc", "z").replace("gmt", "z").replace(" z", "z").upper()
        then = datetime.fromisoformat(iso) if text[:4].isdecimal() else parsedate_to_datetime(text)
        at_ms = then.replace(tzinfo=then.tzinfo or UTC).timestamp() * 1000
        return None if now_ms is None else _capped(at_ms - now_ms)
    return None


def _capped(ms: float) -> int:
    return int(min(max(0, ms), MAX_WAIT_MS))
