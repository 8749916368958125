"""
Write a tool's result once, in a bounded number of bytes.

The bound counts the JSON that the model reads, with its quotes, escapes and UTF-8 bytes. A value that is too long is
cut by type:

    text     leading characters and a suffix: `... [truncated: 65,476 of 10,485,760 characters shown]`
    list     leading elements, whole, then `{"_truncated": true, "omitted": n}`
    object   `{"_truncated_json": "<leading JSON>", "original_bytes": n}`, as a list of which not even the first element fits
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final

import orjson

from .control import repaired
from .plain_json import LIMIT, Copy, dumps, exact, written


MIN_LIMIT: Final = 256
"""Bytes; with less there is no room to say that something was cut."""


@dataclass(slots=True)
class Rendered:
    """
    A result as the model reads it.
    """

    payload: bytes
    """JSON."""
    text: str | None
    """The plain text of a result that is text, cut where *payload* is cut."""
    complete: bool
    """Nothing was cut."""


def render(value: Any, limit: int = LIMIT) -> Rendered:
    """
    Returns *value* in at most *limit* (`MIN_LIMIT` or more) bytes of JSON. It raises nothing for any value.

    Rendering the value of a payload gives the same payload.
    """
    kind = type(value)
    if kind is str:
        return _render_text(value, limit)
    total = len(value) if kind is list or kind is tuple else None
    text = dumps(value) if kind is dict or total is not None else None
    if text is None:
        value = Copy(limit, consumes=True).of(value)
        if type(value) is str:
            return _render_text(value, limit)
        text = written(value)
        total = len(value) if total is None and type(value) is list else total
    if len(text) <= limit:
        return Rendered(exact(text), None, True)
    payload = None if total is None else _cut_list(value, total, limit)
    return Rendered(payload or _cut_object(text, limit), None, False)


def leading(text: str, room: int) -> str:
    """
    Returns the longest beginning of *text*, which has no lone surrogates, that takes at most *room* bytes between the quotes of a JSON string.
    """
    text = text[: max(room, 0)]
    return text[: bisect_right(range(len(text)), room, key=lambda at: len(orjson.dumps(text[: at + 1])) - 2)]


def _suffix(shown: int, total: int) -> str:
    # Characters, since to count the bytes of a text that is not ASCII takes a pass over all of it.
    return f"... [truncated: {shown:,} of {total:,} characters shown]"


def _render_text(value: str, limit: int) -> Rendered:
    total, head = len(value), repaired(value[:limit])
    payload = orjson.dumps(head)
    if total <= limit and len(payload) <= limit:
        return Rendered(exact(payload), head, True)
    head = leading(head, limit - 2 - len(_suffix(total, total)))
    text = head + _suffix(len(head), total)
    return Rendered(orjson.dumps(text), text, False)


def _cut_list(items: Any, total: int, limit: int) -> bytes | None:
    """
    Returns the leading *items* of *total* and a sentinel; None if not even the first fits.
    """
    sentinel, parts = b'{"_truncated":true,"omitted":%d}]', list[bytes]()
    room = limit - len(sentinel % total) - 1
    for text in map(written, items):
        room -= len(text) + 1
        if room < 0:
            break
        parts.append(text)
    return b"[%b,%b" % (b",".join(parts), sentinel % (total - len(parts))) if parts else None


def _cut_object(text: bytes, limit: int) -> bytes:
    closing = b'","original_bytes":%d}' % len(text)
    head = leading(text[:limit].decode("utf-8", "ignore"), limit - 20 - len(closing))
    return b'{"_truncated_json":"%b%b' % (orjson.dumps(head)[1:-1], closing)
