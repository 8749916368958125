"""
Lines of transcripts, which anybody may have written.
"""

import json

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final


_NOTHING: Final[Mapping[str, Any]] = {}


def parsed(line: bytes) -> Mapping[str, Any]:
    """
    The object that *line* is the JSON of; an empty one if it is none.
    """
    with suppress(ValueError, RecursionError):
        return mapping(json.loads(line))
    return _NOTHING


def mapping(value: Any) -> Mapping[str, Any]:
    """
    *value* if it is an object, else an empty one.
    """
    return value if isinstance(value, dict) else _NOTHING


def at_ms(said: Any) -> int | None:
    """
    Milliseconds since 1970 of a time as ISO 8601 writes it. Returns None if it is none.
    """
    if not isinstance(said, str) or len(said) > 40:
        return None
    with suppress(ValueError, OverflowError):
        at = datetime.fromisoformat(said)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return None
