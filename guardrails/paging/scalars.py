"""
Booleans, counts and absent values in the ways that results write them.
"""

import re

from typing import Any, Final


_DIGITS: Final = re.compile(r"\d{1,3}(?:,\d{3}){1,4}|\d{1,15}")
_EMPTY: Final = frozenset({"", "null", "none", "nil", "n/a", "false", "-1", "-"})
_FLAGS: Final = {"true": True, "yes": True, "1": True, "y": True, "false": False, "no": False, "0": False, "n": False}


def is_empty(value: Any) -> bool:
    """
    Whether a place to go on is none.
    """
    if isinstance(value, str):
        return len(value) < 8 and value.strip().lower() in _EMPTY
    return value is None or value is False or (isinstance(value, (dict, list, tuple)) and not value)


def flag(value: Any) -> bool | None:
    """
    A boolean, also one that is written as text or as 0 or 1; None for anything else.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower()) if len(value) < 8 else None
    return bool(value) if type(value) is int and value in {0, 1} else None


def number(value: Any) -> int | None:
    """
    A count, also one that is written as text or stands as `{"value": n}`; None for anything else.
    """
    if isinstance(value, dict):
        value = value.get("value", value.get("count"))
    if isinstance(value, str) and len(value) < 20 and _DIGITS.fullmatch(value):
        return int(value.replace(",", ""))
    return value if type(value) is int and 0 <= value < 10**15 else None
