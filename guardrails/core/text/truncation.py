"""
Write a tool's result once, in a bounded number of bytes.

The bound counts the JSON that the model reads, with its quotes, escapes and UTF-8 bytes. A value that is too long is
cut by type:

    text     leading characters and a suffix: `... [truncated: 65,476 of 10,485,760 characters shown]`
    list     leading elements, whole, then `{"_truncated": true, "omitted": n}`; if not even the first fits, that object
             also holds the first's leading JSON, as `_truncated_json`
    object   `{"_truncated_json": "<leading JSON>", "original_bytes": n}`
"""

from bisect import bisect_right
from itertools import islice
from typing import Any, Final

import orjson

from guardrails.core.values.dataclass import dataclass

from .control import repaired
from .plain_json import LIMIT, Copy, dumps, exact, written


MIN_LIMIT: Final = 256
"""Bytes; with less there is no room to say that something was cut."""
_HOLDERS: Final = frozenset((dict, list, tuple))
_SPREAD: Final = 1 << 20
"""Containers in a value that is still written in one go: with shared references it may have any number."""
_LOOKED: Final = 4_096
"""Containers that are looked at for it."""
_MEMBERS: Final = 32


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
    size: int
    """Bytes of *payload*."""
    original_bytes: int
    """Bytes of the whole as JSON: exact if it was written, else extrapolated from its leading parts, or at least so many."""


def render(value: Any, limit: int = LIMIT) -> Rendered:
    """
    Returns *value* in at most *limit* (`MIN_LIMIT` or more) bytes of JSON. It raises nothing for any value.

    Rendering the value of a payload gives the same payload.
    """
    kind = type(value)
    if kind is str:
        return _render_text(value, limit)
    total, whole = len(value) if kind is list or kind is tuple else None, True
    text = dumps(value) if kind in _HOLDERS and _is_narrow(value) else None
    if text is None:
        copy = Copy(limit, consumes=True)
        value = copy.of(value)
        if type(value) is str:
            return _render_text(str.__str__(copy.text), limit)
        text, whole = written(value), copy.whole
        total = len(value) if total is None and type(value) is list else total
    size = len(text)
    if size <= limit:
        return Rendered(b"%b" % text, None, whole, size, size)
    return _cut_object(text, limit) if total is None else _cut_list(value, total, limit, size if whole else None)


def _is_narrow(value: Any) -> bool:
    """
    Returns whether *value* holds at most about `_SPREAD` containers, by the first row of each list and the first members of each object.
    """
    spread, holders = 0, [(value, 1)]
    for holder, times in holders:
        spread += times
        if spread > _SPREAD or len(holders) > _LOOKED:
            return False
        is_object = type(holder) is dict
        parts = holder.values() if is_object else holder[:1]
        for part in () if _HOLDERS.isdisjoint(map(type, parts)) else islice(parts, _MEMBERS):
            if type(part) in _HOLDERS:
                each = times if is_object else times * len(holder)
                holders.append((part, each))
    return True


def leading(text: str, room: int) -> str:
    """
    Returns the longest beginning of *text*, which has no lone surrogates, that takes at most *room* bytes between the quotes of a JSON string.
    """
    room = max(room, 0)
    text = text[:room]
    if len(orjson.dumps(text)) - 2 <= room:
        return text
    return text[: bisect_right(range(len(text)), room, room // 6, key=lambda at: len(orjson.dumps(text[: at + 1])) - 2)]


def _suffix(shown: int, total: int) -> str:
    # Characters, since to count the bytes of a text that is not ASCII takes a pass over all of it.
    return f"... [truncated: {shown:,} of {total:,} characters shown]"


def _render_text(value: str, limit: int) -> Rendered:
    total, head = len(value), value[:limit]
    payload = dumps(head)
    if payload is None:
        head = repaired(head)
        payload = orjson.dumps(head)
    size = len(payload)
    if total <= limit and size <= limit:
        return Rendered(exact(payload), head, True, size, size)
    head = leading(head, limit - 2 - len(_suffix(total, total)))
    text = head + _suffix(len(head), total)
    payload = orjson.dumps(text)
    original = 2 + (len(payload) - 2 - len(text) + len(head)) * total // max(len(head), 1)
    return Rendered(payload, text, False, len(payload), original)


def _cut_list(items: Any, total: int, limit: int, original: int | None) -> Rendered:
    sentinel = b'{"_truncated":true,"omitted":%d'
    room, count = limit - len(sentinel % total) - 3, 0
    parts: list[bytes] = []
    while count < len(items) and len(text := written(items[count])) < room:
        parts.append(text)
        room, count = room - len(text) - 1, count + 1
    if count:
        payload = b"[%b,%b}]" % (b",".join(parts), sentinel % (total - count))
        original = len(payload) * total // count if original is None else original
    else:
        opening = b"[" + sentinel % total + b',"_truncated_json":"'
        lead = written(items[0])
        payload = b'%b%b"}]' % (opening, _quoted(lead, limit - len(opening) - 3))
        original = len(lead) * total if original is None else original
    return Rendered(payload, None, False, len(payload), max(original, len(payload)))


def _cut_object(text: bytes, limit: int) -> Rendered:
    closing = b'","original_bytes":%d}' % len(text)
    payload = b'{"_truncated_json":"%b%b' % (_quoted(text, limit - 20 - len(closing)), closing)
    return Rendered(payload, None, False, len(payload), len(text))


def _quoted(text: bytes, room: int) -> bytes:
    """
    Returns the beginning of *text* as it stands between quotes, in at most *room* bytes.
    """
    return orjson.dumps(leading(text[: max(room, 0)].decode("utf-8", "ignore"), room))[1:-1]
