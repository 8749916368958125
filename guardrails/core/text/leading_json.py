"""
The leading bytes of a value's JSON, at a cost that their number sets and not the value.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import orjson

from .jsonable import dumps, plain, repaired
from .room import CONTAINERS, MAX_DEPTH, room_left


_SMALL: Final = 8192
_CHUNK: Final = 64
_MAX_KEY: Final = 200
_ESCAPE: Final = len(r"\u001f")
_MAX_BITS: Final = 14_000
"""Longer integers are hexadecimal text: Python reads 4,300 digits, and writing decimals takes quadratic time."""
_WRITTEN: Final = object()

_Members = Iterator[tuple[bytes, Any]]


def leading_json(value: Any, limit: int, depth: int = MAX_DEPTH) -> tuple[bytes, bool]:
    """
    Returns the first *limit* bytes of the JSON of *value*, and whether that is all of it and nests no deeper than
    *depth*.

    The function is total. A value that JSON does not know is made `plain`, and NaN and infinities are null. Half a
    surrogate pair is U+FFFD, an object inside itself is `[circular reference]`, integers are exact. Keys become
    strings, with `_` appended if two would be one.
    """
    parts: list[bytes] = []
    size = 0
    shallow = True
    for piece in _pieces(value, limit, depth):
        if piece is None:
            shallow = False
            continue

        parts.append(piece)
        size += len(piece)
        if size > limit:
            return b"".join(parts)[: max(limit, 0)], False

    return b"".join(parts), shallow


def leading_items(items: Iterator[Any], room: int) -> tuple[list[bytes], int]:
    """
    Returns the JSON of the leading elements that take at most *room* bytes with a comma each, several to a part; and
    how many.
    """
    parts: list[bytes] = []
    kept = 0
    while chunk := list(islice(items, _CHUNK)):
        text = _light(chunk, MAX_DEPTH)
        if text is not None and len(text) <= room + 1:
            parts.append(text[1:-1])
            room -= len(text) - 1
            kept += len(chunk)
            continue

        for item in chunk:
            # The members of a light list are light.
            lead, fits = leading_json(item, room - 1, MAX_DEPTH - 1) if text is None else (orjson.dumps(item), True)
            if not fits or len(lead) >= room:
                return parts, kept

            parts.append(lead)
            room -= len(lead) + 1
            kept += 1

    return parts, kept


def leading_escaped(text: str, room: int) -> bytes:
    """
    Returns as much of *text* as takes at most *room* bytes between the quotes of a JSON string, written so.

    *text* has no lone surrogates; the cut is never inside a character or an escape.
    """
    room = max(room, 0)
    body = orjson.dumps(text[:room])[1:-1]
    if len(body) <= room:
        return body

    body = body[:room]
    at = body.rfind(b"\\", max(room - _ESCAPE + 1, 0))
    if at >= 0:
        starts_one = (at - len(body[:at].rstrip(b"\\"))) % 2 == 0
        length = _ESCAPE if body[at + 1 : at + 2] == b"u" else 2
        if starts_one and at + length > room:
            body = body[:at]
    return body.decode("utf-8", "ignore").encode()


def estimate(value: Any, samples: int = 256) -> int:
    """
    Returns about how many bytes of JSON *value* takes, extrapolated from at most *samples* of its parts.

    In a list they are evenly spaced, in an object and a text they lead.
    """
    if isinstance(value, str):
        head = str.__getitem__(value, slice(256))
        return 2 + (len(_quoted(head, 256)) - 2) * str.__len__(value) // max(len(head), 1)

    if isinstance(value, dict):
        pairs = list(islice(dict.items(value), min(samples, 64)))
        sizes = [len(_name(key)) + 4 + estimate(member, samples // (len(pairs) + 1)) for key, member in pairs]
        total = dict.__len__(value)
    elif isinstance(value, list | tuple):
        base: Any = list if isinstance(value, list) else tuple
        total = base.__len__(value)
        most = min(samples, 16)
        items = base.__getitem__(value, slice(None, None, total // most + 1)) if most else ()
        sizes = [1 + estimate(item, samples // (len(items) + 1)) for item in items]
    else:
        return len(dumps(value) or b"null")

    return max(2, 1 + (sum(sizes) * total // len(sizes) if sizes else 8 * total))


def _pieces(value: Any, room: int, depth: int) -> Iterator[bytes | None]:
    """
    Returns the JSON of *value*, lazily and without recursion. Returns None if it nests deeper than *depth*.

    A text longer than *room* is shortened to more than that, since nothing behind it can be wanted.
    """
    trail: list[tuple[_Members, bytes, Any]] = [(iter(((b"", value),)), b"", None)]
    inside: set[int] = set()
    while trail:
        members, closing, opened = trail[-1]
        for prefix, member in members:
            yield prefix
            if member is _WRITTEN:
                continue

            simple = plain(member, room)
            levels = depth + 1 - len(trail)
            text = _leaf(simple, room, levels)
            if text is not None:
                yield text
            elif id(member) in inside:
                yield b'"[circular reference]"'
            else:
                if levels < 1:
                    yield None
                is_dict = isinstance(simple, dict)
                yield b"{" if is_dict else b"["
                inner = _pairs(simple, room, levels) if is_dict else _items(simple, levels)
                trail.append((inner, b"}" if is_dict else b"]", member))
                inside.add(id(member))
                break
        else:
            trail.pop()
            inside.discard(id(opened))
            yield closing


def _pairs(value: dict[Any, Any], room: int, levels: int) -> _Members:
    taken: set[str] = set()
    pairs = iter(list(islice(dict.items(value), max(room // 4, 1))))
    comma = b""
    while chunk := list(islice(pairs, _CHUNK)):
        text = None
        if {type(key) for key, _ in chunk} == {str} and taken.isdisjoint(small := dict(chunk)):
            text = _light(small, levels)
        if text is not None:
            taken.update(small)
            yield comma + text[1:-1], _WRITTEN
            comma = b","
            continue

        for key, member in chunk:
            name = _name(key)
            while name in taken:
                name += "_"
            taken.add(name)
            yield b"%b%b:" % (comma, _quoted(name, room)), member
            comma = b","


def _items(value: Any, levels: int) -> _Members:
    items = _each(value)
    comma = b""
    while chunk := list(islice(items, _CHUNK)):
        text = _light(chunk, levels)
        if text is not None:
            yield comma + text[1:-1], _WRITTEN
            comma = b","
            continue

        for member in chunk:
            yield comma, member
            comma = b","


def _each(value: Any) -> Iterator[Any]:
    return list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)


def _name(key: Any) -> str:
    if isinstance(key, str):
        name = str.__str__(key)
        return name if name.isascii() or dumps(name) is not None else repaired(name)

    text, whole = leading_json(key, _MAX_KEY)
    return str(orjson.loads(text)) if whole and text.startswith(b'"') else text.decode("utf-8", "ignore")


def _leaf(value: Any, room: int, levels: int) -> bytes | None:
    """
    Returns the JSON of what is no container, or of a light one.
    """
    if isinstance(value, str):
        return _quoted(value, room)

    if isinstance(value, dict | list | tuple):
        return _light(value, levels)

    text = dumps(value)
    if text is None:
        text = (
            orjson.dumps(float.__float__(value)) if isinstance(value, float) else _integer(int.__index__(value), room)
        )
    return text


def _integer(value: int, room: int) -> bytes:
    if value.bit_length() <= _MAX_BITS:
        try:
            return b"%d" % value
        except ValueError:
            # The interpreter was told to write fewer digits than its default.
            pass

    return _quoted(hex(value), room)


def _light(value: Any, levels: int) -> bytes | None:
    """
    Returns the JSON of a small container, in one go; one of more containers than *levels* might nest deeper than that.
    """
    kind = type(value)
    if kind in CONTAINERS and room_left(value, _SMALL, levels) >= 0:
        return dumps(value)

    return None


def _quoted(text: str, room: int) -> bytes:
    head = str.__getitem__(text, slice(max(room, 0) + 1))
    return dumps(head) or orjson.dumps(repaired(head))
