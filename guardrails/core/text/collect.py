"""
Values that a tool hands over piecemeal or as raw bytes, made into one bounded JSON-like value.

An iterator becomes a list, bytes become text or base64. All work is bounded, so an endless generator ends.
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
MAX_TEXT_BYTES: Final = 16 * 1024 * 1024
"""Longer bytes are cut before they are decoded, under any limit."""
_SNIFF_BYTES: Final = 8192

Bytes = bytes | bytearray | memoryview


class _Items:
    """
    What is taken from an iterator until it is *full*.
    """

    def __init__(self, limit: int) -> None:
        self.taken: list[Any] = []
        self.limit = self.room = limit

    @property
    def full(self) -> bool:
        return self.room <= 0 or len(self.taken) >= MAX_ITEMS

    def add(self, item: Any) -> None:
        self.taken.append(resolved(item, self.limit)[0])
        try:
            self.room -= len(orjson.dumps(self.taken[-1])) + 1
        except Exception:  # noqa: BLE001  whatever it is, some other way of writing takes a few bytes
            self.room -= 8


def collect(items: Iterator[Any], limit: int = LIMIT_BYTES) -> tuple[list[Any], bool]:
    """
    Returns the items as a list, and whether that is all of them.

    Ends after *limit* bytes (the item that crosses the limit is the last) or 10,000 items; then the iterator is closed.
    Raises what the iterator raises.
    """
    made = _Items(limit)
    try:
        for item in items:
            if made.full:
                return made.taken, False
            made.add(item)
    finally:
        # A tool that fails while it is told to stop has still given what it gave.
        with suppress(Exception):
            getattr(items, "close", lambda: None)()
    return made.taken, True


async def collect_async(items: AsyncIterator[Any], limit: int = LIMIT_BYTES) -> tuple[list[Any], bool]:
    """
    Returns the items of an asynchronous iterator as `collect` does.
    """
    made = _Items(limit)
    try:
        async for item in items:
            if made.full:
                return made.taken, False
            made.add(item)
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
    return collect(value, limit) if hasattr(kind, "__next__") else resolved(value, limit)


def resolved(value: Any, limit: int = LIMIT_BYTES) -> tuple[Any, bool]:
    """
    Returns bytes as `decoded` gives them, anything else as it is; and whether all of it is there.
    """
    return decoded(value, limit) if issubclass(type(value), Bytes) else (value, True)


def decoded(data: Bytes, limit: int = LIMIT_BYTES) -> tuple[str | dict[str, Any], bool]:
    """
    Returns bytes as text if they are UTF-8 without NUL, else as `{"base64": "...", "bytes": n}`; and whether all is
    there.

    Only a head is looked at. Binary data fills at most *limit* bytes of base64; *n* is the whole length. Text fills at
    most *limit* bytes of JSON, 16 MiB at most. Longer text ends in `... [truncated: 65,480 of 10,485,760 bytes shown]`.
    """
    view = memoryview(data)
    view = view.cast("B") if view.contiguous else memoryview(view.tobytes())
    size, room = view.nbytes, min(limit, MAX_TEXT_BYTES)
    head, end = bytes(view[:room]), room
    if b"\x00" not in head[:_SNIFF_BYTES]:
        try:
            text = head.decode()
        except UnicodeDecodeError as problem:
            # Cut within a character, or no text.
            end = problem.start
            text = head[:end].decode()
        if end == room or (size > room and end >= room - 3):
            return (text, True) if size <= room else (_said_cut(text, size, room), False)
    whole = limit * 3 // 4
    return {"base64": b2a_base64(view[:whole], newline=False).decode("ascii"), "bytes": size}, size <= whole


def _said_cut(head: str, size: int, room: int) -> str:
    """
    Returns *head*, of *size* bytes, with what says so: in *room* bytes of JSON, so that nobody has to cut it again.
    """
    while True:
        text = f"{head}... [truncated: {len(head.encode()):,} of {size:,} bytes shown]"
        written = len(orjson.dumps(text))
        if written <= room or not head:
            return text
        head = head[: min(len(head) - 1, len(head) * room // written)]
