"""
Values that a tool hands over piecemeal or as raw bytes, made into one JSON-like value.

An iterator becomes a list, bytes become text or base64. An endless generator ends.
"""

from binascii import b2a_base64
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, Final

import orjson


LIMIT_BYTES: Final = 65_536
"""Default size at which a collection ends, in bytes of JSON text; the size to which results are cut anyway."""
MAX_ITEMS: Final = 10_000
"""An iterator ends here, however small its items are."""
_SNIFF_BYTES: Final = 8192

Bytes = bytes | bytearray | memoryview


class Items:
    """
    What is *taken* from an iterator, about *room* bytes of JSON.
    """

    def __init__(self, room: int) -> None:
        self.taken: list[Any] = []
        self.room = room

    def add(self, item: Any) -> bool:
        """
        Take *item*, the last one if it crosses the limit. Returns False if there was no room for it.
        """
        if self.room <= 0 or len(self.taken) >= MAX_ITEMS:
            return False
        item = decoded(item)[0] if issubclass(type(item), Bytes) else item
        self.taken.append(item)
        try:
            self.room -= len(orjson.dumps(item)) + 1
        except Exception:  # noqa: BLE001  whatever it is, some other way of writing takes a few bytes
            self.room -= 8
        return True


def collect(items: Iterator[Any], limit: int = LIMIT_BYTES) -> tuple[list[Any], bool]:
    """
    Returns the items as a list, and whether that is all of them.

    Ends after *limit* bytes (the item that crosses the limit is the last) or 10,000 items; then the iterator is closed.
    Raises what the iterator raises.
    """
    made = Items(limit)
    try:
        return made.taken, all(map(made.add, items))
    finally:
        # A tool that fails while it is told to stop has still given what it gave.
        with suppress(Exception):
            getattr(items, "close", lambda: None)()


async def collect_async(items: AsyncIterator[Any], limit: int = LIMIT_BYTES) -> tuple[list[Any], bool]:
    """
    Returns the items of an asynchronous iterator as `collect` does.
    """
    made = Items(limit)
    try:
        async for item in items:
            if not made.add(item):
                return made.taken, False
    finally:
        with suppress(Exception):
            if (close := getattr(items, "aclose", None)) is not None:
                await close()
    return made.taken, True


def taken(value: Any, limit: int = LIMIT_BYTES) -> tuple[Any, bool]:
    """
    Returns bytes as `decoded` gives them, an iterator as `collect` does, anything else as it is; and whether all of it is there. Raises
    TypeError for what can only be awaited, and what the iterator raises.
    """
    kind = type(value)
    if hasattr(kind, "__await__") or hasattr(kind, "__anext__"):
        getattr(value, "close", lambda: None)()
        raise TypeError(f"the tool returned an unawaited `{kind.__name__}`; call it through the asynchronous session")
    if hasattr(kind, "__next__"):
        return collect(value, limit)
    return decoded(value, limit) if issubclass(kind, Bytes) else (value, True)


def decoded(data: Bytes, limit: int = LIMIT_BYTES) -> tuple[str | dict[str, Any], bool]:
    """
    Returns bytes as text if they are UTF-8 without NUL, else as `{"base64": "...", "bytes": n}`, of which *n* is the whole length and
    base64 takes at most *limit* bytes; and whether all is there.
    """
    data, room = bytes(data), limit * 3 // 4
    if b"\x00" not in data[:_SNIFF_BYTES]:
        with suppress(UnicodeDecodeError):
            return data.decode(), True
    return {"base64": b2a_base64(data[:room], newline=False).decode("ascii"), "bytes": len(data)}, len(data) <= room
