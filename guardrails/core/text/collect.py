"""
Values that a tool hands over piecemeal or as raw bytes, made into one bounded JSON-like value.

An iterator becomes a list, bytes become text or base64. All work is bounded, so an endless generator ends.
"""

from binascii import b2a_base64
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

import orjson


LIMIT_BYTES: Final = 65_536
"""Default size at which a collection ends, in bytes of JSON text; the size to which results are cut anyway."""
MAX_ITEMS: Final = 10_000
"""An iterator ends here, however small its items are."""
MAX_TEXT_BYTES: Final = 16 * 1024 * 1024
"""Longer bytes are cut before they are decoded, under any limit."""
_SNIFF_BYTES: Final = 8192
_NODES: Final = 2000

Bytes = bytes | bytearray | memoryview


def collect(items: Iterator[Any], limit: int = LIMIT_BYTES) -> tuple[list[Any], bool]:
    """
    Returns the items as a list, and whether that is all of them.

    Ends after *limit* bytes (the item that crosses the limit is the last) or 10,000 items; then the iterator is closed.
    Raises what the iterator raises.
    """
    taken: list[Any] = []
    room = limit
    try:
        for item in items:
            if room <= 0 or len(taken) >= MAX_ITEMS:
                return taken, False
            taken.append(resolved(item, limit)[0])
            room -= weight(taken[-1], room)
    finally:
        _close(items)

    return taken, True


async def collect_async(items: AsyncIterator[Any], limit: int = LIMIT_BYTES) -> tuple[list[Any], bool]:
    """
    Returns the items of an asynchronous iterator as `collect` does.
    """
    taken: list[Any] = []
    room = limit
    try:
        async for item in items:
            if room <= 0 or len(taken) >= MAX_ITEMS:
                return taken, False
            taken.append(resolved(item, limit)[0])
            room -= weight(taken[-1], room)
    finally:
        await _aclose(items)

    return taken, True


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
    size = memoryview(data).nbytes
    if b"\x00" not in bytes(_head(data, _SNIFF_BYTES)):
        room = min(limit, MAX_TEXT_BYTES)
        text = _text(data, size, room)
        if text is not None:
            return (text, True) if size <= room else (_said_cut(text, size, room), False)

    whole = limit * 3 // 4
    return {"base64": b2a_base64(_head(data, whole), newline=False).decode("ascii"), "bytes": size}, size <= whole


def _text(data: Bytes, size: int, room: int) -> str | None:
    """
    Returns *data* as text, at most *room* bytes of it. Returns None if it is not UTF-8.
    """
    head = bytes(_head(data, room))
    try:
        return head.decode()
    except UnicodeDecodeError as problem:
        cut_in_character = size > len(head) and problem.start >= len(head) - 3
        return head[: problem.start].decode() if cut_in_character else None


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


def _head(data: Bytes, length: int) -> Bytes:
    if type(data) is memoryview:
        data = data.cast("B") if data.contiguous else data.tobytes()
    return data[:length]


def weight(value: Any, enough: int) -> int:
    """
    Returns about how many bytes *value* takes as JSON: at least 2, counted up to *enough* bytes or 2,000 parts.
    """
    total = 0
    waiting = [value]
    for _ in range(_NODES):
        if not waiting or total >= enough:
            break

        part = waiting.pop()
        if isinstance(part, str):
            total += len(part) + 3
        elif isinstance(part, dict):
            total += 2
            waiting += _first(part.keys())
            waiting += _first(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            total += 2
            waiting += _first(part)
        else:
            total += 8
    return max(2, total)


def _first(parts: Iterable[Any]) -> list[Any]:
    return [part for part, _ in zip(parts, range(_NODES), strict=False)]


def _close(items: object) -> None:
    """
    A tool that fails while it is told to stop has still given what it gave.
    """
    try:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    except Exception:  # noqa: BLE001, S110
        pass


async def _aclose(items: object) -> None:
    try:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
    except Exception:  # noqa: BLE001, S110
        pass
