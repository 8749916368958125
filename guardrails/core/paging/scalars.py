"""
Booleans, counts and absent values in the ways that results write them.
"""

import re

from typing import Any, Final

from guardrails.core.values.late_pattern import pattern


_DIGITS: Final = pattern(r"\d{1,3}(?:,\d{3}){1,4}|\d{1,15}")
_ROUGH: Final = pattern(
    r"(?:(?:about|approximately|around|over|more than|at least) |[~><\u2248\u2265]=? ?)\d[\d,]{0,18}|\d[\d,]{0,18}\+"
)
_SPAN: Final = pattern(
    r"(?:[a-z]{1,8} )?(?:(\d{1,12}) ?(?:-|\u2013|to) ?)?(\d{1,12})(?: (?:out )?of |/| / )(\d{1,12})(?: [a-z]{1,12})?",
    re.IGNORECASE,
)
_EMPTY: Final = frozenset({"", "null", "none", "nil", "n/a", "false", "-1", "-"})
_FLAGS: Final = {"true": True, "yes": True, "1": True, "y": True, "false": False, "no": False, "0": False, "n": False}


def is_empty(value: Any) -> bool:
    """
    Returns whether a place to go on is none.
    """
    if isinstance(value, str):
        return len(value) < 8 and value.strip().lower() in _EMPTY
    return value is None or value is False or (isinstance(value, (dict, list, tuple)) and not value)


def flag(value: Any) -> bool | None:
    """
    Returns a boolean, also one that is written as text or as 0 or 1; None for anything else.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower()) if len(value) < 8 else None
    return bool(value) if type(value) is int and value in {0, 1} else None


def number(value: Any) -> int | None:
    """
    Returns a count, also one that is written as text or stands as `{"value": n}`; None for anything else.
    """
    if isinstance(value, dict):
        value = value.get("value", value.get("count"))
    if isinstance(value, str) and len(value) < 20 and _DIGITS.fullmatch(value):
        return int(value.replace(",", ""))
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 10**15 else None


def is_rough(value: Any) -> bool:
    """
    Returns whether a value is a count that is not exact: `120+`, `about 120`, at least 10,000.
    """
    if isinstance(value, dict):
        return value.get("relation") not in {None, "eq"}
    return isinstance(value, str) and len(value) < 32 and _ROUGH.fullmatch(value.strip().lower()) is not None


def span(value: Any) -> tuple[int, int] | None:
    """
    Returns the last shown and the total of a text like `1-10 of 120` or `items 0-9/120`. Returns None if it is none.
    """
    at = _SPAN.fullmatch(value) if isinstance(value, str) and len(value) < 48 else None
    if at is None:
        return None
    first, last, total = (None if one is None else int(one.replace(",", "")) for one in at.groups())
    if last is None or total is None:
        return None
    # A range of HTTP counts from 0.
    return last + (first == 0), total
