"""
The size of a value as JSON, estimated, and a test whether it is small enough to be written in one go, without writing it.
"""

from typing import Any, Final


MAX_DEPTH: Final = 254
"""Containers within each other: as many as orjson writes."""
MAX_CONTAINERS: Final = 1 << 16
"""A value with more is not walked to its end: with cycles or shared references it may have none."""
CONTAINERS: Final = frozenset((dict, list, tuple))
"""The exact types that are looked into."""

WALKED: Final = 1 << 20
"""Bytes from which on an estimate is not enough: to write a smaller value costs less than a walk through all of it."""


def size_of(value: Any, depth: int = 3) -> int:
    """
    Returns about how many bytes of JSON *value* takes, a list from its length, its first and its last row. What a look at 256 containers
    does not settle counts as more than `WALKED`.
    """
    kind = type(value)
    if kind is list and len(value) > 2:
        return len(value) * (2 * WALKED - room_left(value[:1], WALKED, 256) - room_left(value[-1:], WALKED, 256)) // 2
    if kind is dict and depth:
        total = 2
        for part in value.values():
            kind = type(part)
            if kind is str:
                total += len(part)
            elif kind is list or kind is dict:
                total += size_of(part, depth - 1)
            elif kind is tuple:
                return WALKED + 1
        return total + 16 * len(value)
    return WALKED - room_left([value], WALKED, 256)


def room_left(value: Any, room: int, containers: int = MAX_CONTAINERS) -> int:
    """
    Returns *room* less the bytes that an exact dict, list or tuple certainly takes. The walk ends, and the result is
    negative, if the value takes more or holds more than *containers*. The same goes for tuples nested deeper than
    `MAX_DEPTH`: orjson (3.13) does not count their depth and writes past its buffer.

    An element counts as a comma and one byte, a text as a byte a character. Only exact builtin types are looked into, so
    no code of the value runs.
    """
    waiting = [value]
    tuples = 0
    try:
        for parent in waiting:
            room -= 2 * len(parent)
            if room < 0:
                return room
            for part in parent.values() if type(parent) is dict else parent:
                kind = type(part)
                if kind is str:
                    room -= len(part)
                elif kind is int or kind is bool:
                    # Ahead of the containers, and spelt out: most of what is not text is one of the two.
                    continue
                elif kind is dict or kind is list:
                    waiting.append(part)
                elif kind is tuple:
                    waiting.append(part)
                    tuples += 1
            if room < 0 or len(waiting) > containers:
                return -1
    except RuntimeError:
        # Another thread changes the value. What follows works on snapshots.
        return -1

    return -1 if tuples > MAX_DEPTH and _nests(value, MAX_DEPTH) else room


def _nests(value: Any, depth: int) -> bool:
    """
    Returns whether the containers of *value* nest deeper than *depth*.
    """
    level = [value]
    for _ in range(depth):
        level = [
            part
            for parent in level
            for part in (parent.values() if type(parent) is dict else parent)
            if type(part) in CONTAINERS
        ]
        if not level:
            return False
    return True
