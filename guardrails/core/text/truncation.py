"""
Serialise a tool's result once, in a bounded number of bytes, at a cost that the bound sets and not the result.

The bound counts the JSON that the model reads, with its quotes, escapes and UTF-8 bytes. A value that is too long is
cut by type:

    text     leading characters and a suffix: `... [truncated: 65,476 of 10,485,760 characters shown]`
    list     leading elements, whole, then `{"_truncated": true, "omitted": n}`; if not even the first fits, that object
             also holds the first's leading JSON, as `_truncated_json`
    object   `{"_truncated_json": "<leading JSON>", "original_bytes": n}`

A value that nests deeper than `room.MAX_DEPTH` is cut as if it were too long, so that its JSON survives as text.
"""

from dataclasses import dataclass
from typing import Any, Final

import orjson

from .jsonable import OPTIONS, dumps, exact, plain, repaired
from .leading_json import estimate, leading_escaped, leading_items, leading_json
from .room import MAX_CONTAINERS, WALKED, room_left, size_of


LIMIT: Final = 65_536
"""Bytes of one result (MISSION D3)."""
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
    size: int
    """Bytes of *payload*."""
    original_bytes: int
    """Bytes of the whole as JSON: exact where all of it was serialised, else extrapolated from its leading parts."""
    omitted: int | None = None
    """Elements of a list, characters of a text that were cut; None for an object."""

    def compact(self) -> None:
        """
        Let the payload take no more memory than it says: a record or a cached result may hold it for long.
        """
        self.payload = exact(self.payload)


def render(value: Any, limit: int = LIMIT) -> Rendered:
    """
    Returns *value* in at most *limit* (`MIN_LIMIT` or more) bytes of JSON. It raises nothing for any value.

    Rendering the value of a payload gives the same payload. The work is proportional to *limit*, but for bytes, which
    are decoded up to 16 MiB, and for the value's own code (`model_dump`, `__str__`).
    """
    kind = type(value)
    if kind is str:
        return _render_text(value, limit)

    written = None
    heavy = False
    if kind is dict or kind is list or kind is tuple:
        heavy = size_of(value) > WALKED and room_left(value, limit) < 0
        if not heavy:
            try:
                # `dumps`, in place: nearly every result ends here.
                written = orjson.dumps(value, None, OPTIONS)
            except Exception:  # noqa: BLE001, S110
                pass
            else:
                size = len(written)
                if size <= limit:
                    return Rendered(written, None, True, size, size)

    simple = plain(value, limit)
    if simple is not value:
        return render(simple, limit)

    if isinstance(simple, str):
        return _render_text(simple, limit)

    return _render_other(simple, limit, written, heavy=heavy)


def _render_text(value: str, limit: int) -> Rendered:
    total = str.__len__(value)
    if total <= limit:
        text = str.__str__(value)
        payload = dumps(text)
        if payload is None:
            text = repaired(text)
            payload = orjson.dumps(text)
        size = len(payload)
        if size <= limit:
            return Rendered(payload, text, True, size, size)

    room = limit - 2 - len(_suffix(total, total))
    head = str.__getitem__(value, slice(max(room, 0)))
    if "\ud800" <= head[-1:] <= "\udbff":
        head = head[:-1]
    suffix = _suffix(len(head), total)
    text = head + suffix
    payload = dumps(text)
    if payload is None or len(payload) > limit:
        escaped = leading_escaped(head if payload else repaired(head), room)
        head = orjson.loads(b'"%b"' % escaped)
        suffix = _suffix(len(head), total)
        text = head + suffix
        payload = b'"%b%b"' % (escaped, suffix.encode())

    size = len(payload)
    shown = len(head)
    original = 2 + (size - 2 - len(suffix)) * total // max(shown, 1)
    return Rendered(payload, text, complete=False, size=size, original_bytes=original, omitted=total - shown)


def _suffix(shown: int, total: int) -> str:
    # Characters, since to count the bytes of a text that is not ASCII takes a pass over all of it.
    return f"... [truncated: {shown:,} of {total:,} characters shown]"


def _render_other(value: Any, limit: int, written: bytes | None, *, heavy: bool) -> Rendered:
    """
    Render a value that is no text. *written* is its JSON if it is known and too long; *heavy* says that it would be.
    """
    is_list = isinstance(value, list | tuple)
    if written is not None:
        lead = written[:limit]
    elif is_list and heavy and limit <= MAX_CONTAINERS:
        # Written once, element by element, and not first to see where it ends.
        lead = b""
    else:
        lead, fits = leading_json(value, limit)
        if fits:
            return _whole(lead)

    return _cut_list(value, limit, written) if is_list else _cut_object(value, limit, written, lead)


def _whole(payload: bytes) -> Rendered:
    return Rendered(payload, None, complete=True, size=len(payload), original_bytes=len(payload))


def _cut_list(value: Any, limit: int, written: bytes | None) -> Rendered:
    base: Any = list if isinstance(value, list) else tuple
    total = base.__len__(value)
    sentinel = b'{"_truncated":true,"omitted":%d'
    parts, kept = leading_items(base.__iter__(value), limit - len(sentinel % total) - 3)
    if kept == total:
        return _whole(b"[%b]" % b",".join(parts))

    if kept:
        payload = b"[%b,%b}]" % (b",".join(parts), sentinel % (total - kept))
        original = len(payload) * total // kept
    else:
        opening = b"[" + sentinel % total + b',"_truncated_json":"'
        lead, _ = leading_json(base.__getitem__(value, 0), limit)
        payload = b'%b%b"}]' % (opening, _inside_quotes(lead, limit - len(opening) - 3))
        original = max(estimate(value), len(payload))

    if written is not None:
        original = len(written)
    size = len(payload)
    return Rendered(payload, None, complete=False, size=size, original_bytes=original, omitted=total - kept)


def _cut_object(value: Any, limit: int, written: bytes | None, lead: bytes) -> Rendered:
    original = max(estimate(value), len(lead)) if written is None else len(written)
    opening = b'{"_truncated_json":"'
    closing = b'","original_bytes":%d}' % original
    payload = opening + _inside_quotes(lead, limit - len(opening) - len(closing)) + closing
    return Rendered(payload, None, complete=False, size=len(payload), original_bytes=original)


def leading_of(payload: bytes, limit: int) -> bytes:
    """
    Returns the JSON *payload*, of any type, in at most *limit* bytes: as an object is cut.
    """
    return _cut_object(None, limit, payload, payload[:limit]).payload


def _inside_quotes(lead: bytes, room: int) -> bytes:
    return leading_escaped(lead.decode("utf-8", "ignore"), room)
