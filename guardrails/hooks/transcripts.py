"""
The file in which a client keeps what its agent does. Anybody may have written there: nothing of it is believed.
"""

import json
import os
import stat

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final


TAIL: Final = 1 << 20
"""Bytes at the end of a file that are read."""
Line = Mapping[str, Any]
_NOTHING: Final[Line] = {}


def tail(path: str, marks: Iterable[bytes]) -> list[Line]:
    """
    The objects in the last lines of the file *path* that have one of *marks*, but for a line of which the beginning or the end is missing. Empty if
    there is no such file, or it is no plain one.
    """
    # A pipe would wait for who writes into it.
    with suppress(OSError, ValueError), open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            start = file.seek(max(0, status.st_size - TAIL))
            lines = file.read(TAIL).split(b"\n")
            return [_parsed(line) for line in lines[1 if start else 0 : -1] if any(mark in line for mark in marks)]
    return []


def _parsed(line: bytes) -> Line:
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
    with suppress(TypeError, ValueError, OverflowError):
        at = datetime.fromisoformat(said)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return None
