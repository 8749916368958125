"""
The slow path of the canonical form: any Python value, written one by one.

A plain value gets the bytes that the fast path would give it. A value that JSON cannot express is tagged, `{
"!set":[1,2]}`. This is valid JSON, but a canonical plain value has no space outside of its strings, so a tagged value
never equals a plain one.

Containers are what they hold: a tuple is a list, any mapping is a dict. Every other type is itself. Sets, bytes, enums,
dataclasses, pydantic models and subclasses of str, int and float are tagged, with the class's name if it tells them
apart.
"""

import json
import unicodedata

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import Enum
from itertools import groupby, islice
from math import isinf
from typing import Any, Final, cast

import orjson

from guardrails.core.values.late_pattern import pattern


MAX_DEPTH: Final = 254
"""Containers within each other: as many as orjson writes; two frames each leave a caller half of Python's 1,000."""
MAX_VALUES: Final = 1 << 18
"""Values in one form: a list that holds another twice, which holds another twice, and so on, has exponentially many."""
MAX_MARKS: Final = 256
"""Combining marks in a row: normalising them takes quadratic time. Unicode's stream-safe text (UAX 15) has 30 at most."""

TAG: Final = b'{ "!'
"""The beginning of each tagged value; a string of a plain one may hold it too."""

_DECIMAL_BITS: Final = 2_048
"""Longer integers are written in hexadecimal: 616 digits are converted under any limit of `sys.set_int_max_str_digits`."""
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LONG_RUN: Final = pattern(rf"[^\x00-\x7f]{{{MAX_MARKS}}}")
_OPAQUE: Final = pattern(r"^<|\b0x[0-9A-Fa-f]{6}|\.\.\.|\*\*\*")
"""A description, an address, something left out, something masked: two different values may look the same."""

_quoted = json.JSONEncoder(ensure_ascii=False).encode


class Unsignable(Exception):
    """
    The value has no canonical form.
    """


def tagged(value: object) -> bytes:
    """
    Returns the canonical form of any value: JSON in UTF-8.

    Raises `Unsignable` for cycles, and for more than `MAX_DEPTH` levels or `MAX_VALUES` values. It is raised too for an
    object of which only an address, a `<description>` or a shortened or masked repr is known. Errors of the value's own
    code pass through.
    """
    return _Walk().write(value)


def nfc(text: str) -> str:
    """
    Returns *text* in Unicode's normal form C. Raises `Unsignable` at `MAX_MARKS` combining marks in a row.
    """
    if text.isascii():
        return text

    refuse_many_marks(text)
    return unicodedata.normalize("NFC", text)


def refuse_many_marks(text: str) -> None:
    """
    Raise `Unsignable` at `MAX_MARKS` combining marks in a row.
    """
    if _LONG_RUN.search(text) is None:
        return

    for is_mark, run in groupby(map(unicodedata.combining, text), bool):
        if is_mark and sum(1 for _ in run) >= MAX_MARKS:
            raise Unsignable


class _Walk:
    __slots__ = ("depth", "left")

    def __init__(self) -> None:
        self.depth = 0
        self.left = MAX_VALUES

    def write(self, value: Any) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise Unsignable

        kind = type(value)
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            return scalar(value)

        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsignable

        write = next((write for base, write in _COMPOUNDS if issubclass(kind, base)), _object)
        written = write(value, self)
        self.depth -= 1
        return written


def _tag(name: bytes, payload: bytes) -> bytes:
    return b'{ "!%b":%b}' % (name, payload)


def _named(value: object, state: bytes) -> bytes:
    # Without the module: a class is in `__main__` where its file is run and in another module where it is imported.
    return _tag(b"object", b"[%b,%b]" % (_str(type(value).__qualname__), state))


def _str(value: str) -> bytes:
    text = nfc(value)
    try:
        return _quoted(text).encode()
    except UnicodeEncodeError:
        readable = text.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()
        return _tag(b"str", _quoted(readable).encode())


def _int(value: int) -> bytes:
    return b"%d" % value if value.bit_length() < _DECIMAL_BITS else _tag(b"int", b'"%b"' % hex(value).encode())


def _float(value: float) -> bytes:
    if value.is_integer():
        return _int(int(value))

    return _tag(b"float", b'"%b"' % str(value).encode()) if isinf(value) else orjson.dumps(value)


def _mapping(value: Mapping[Any, Any], walk: _Walk) -> bytes:
    if issubclass(type(value), dict):
        pairs: Collection[tuple[Any, Any]] = dict.items(cast("dict[Any, Any]", value))
    else:
        pairs = [(key, value[key]) for key in islice(value, walk.left + 1)]
    named = {nfc(key): item for key, item in pairs if type(key) is str}
    names = sorted(named)
    keys = [_str(name) for name in names]
    if len(keys) == len(pairs) and all(key.startswith(b'"') for key in keys):
        items = map(walk.write, map(named.__getitem__, names))
        return b"{%b}" % b",".join(map(b"%b:%b".__mod__, zip(keys, items, strict=True)))

    keys = [walk.write(key) for key, _ in pairs]
    items = map(walk.write, (item for _, item in pairs))
    return _tag(b"dict", b"[%b]" % b",".join(sorted(map(b"[%b,%b]".__mod__, zip(keys, items, strict=True)))))


def _listed(kind: Any) -> "Write":
    return lambda value, walk: b"[%b]" % b",".join(map(walk.write, kind.__iter__(value)))


def _unordered(kind: Any) -> "Write":
    return lambda value, walk: _tag(b"set", b"[%b]" % b",".join(sorted(map(walk.write, kind.__iter__(value)))))


def _decimal(value: Decimal, _: _Walk) -> bytes:
    return _named(value, _str(str(Decimal.normalize(value, _EXACT)) if value else "0"))


def _bytes(value: bytes | bytearray, _: _Walk) -> bytes:
    return _tag(b"bytes", b'"%b"' % memoryview(value).hex().encode())


def _object(value: Any, walk: _Walk) -> bytes:
    """
    Returns a value of no known type: by its fields, its buffer, its ISO format or its repr.
    """
    kind: Any = type(value)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else getattr(kind, "__pydantic_fields__", None)
    if names is not None:
        extra = getattr(value, "__pydantic_extra__", None) or {}
        return _named(
            value, walk.write({**{name: getattr(value, name) for name in names if hasattr(value, name)}, **extra})
        )
    if (buffer := _buffer(value)) is not None:
        return _named(value, walk.write(buffer))
    if hasattr(kind, "isoformat"):
        return _named(value, walk.write(value.isoformat()))

    text = repr(value)
    if kind.__repr__ is object.__repr__ or _OPAQUE.search(text):
        raise Unsignable

    return _named(value, walk.write(text))


def _buffer(value: Any) -> list[object] | None:
    """
    Format, shape and bytes of an array; exact, while an array's repr is rounded and shortened.
    """
    try:
        view = memoryview(value)
    except (TypeError, ValueError):
        return None

    if "O" in view.format or "P" in view.format:
        raise Unsignable

    return [view.format, view.shape, view.tobytes()]


_SCALARS: Final[dict[type, Callable[[Any], bytes]]] = {
    str: _str,
    int: _int,
    float: _float,
    bool: orjson.dumps,
    type(None): orjson.dumps,
}
Write = Callable[[Any, _Walk], bytes]
_COMPOUNDS: Final[tuple[tuple[type, Write], ...]] = (
    (dict, _mapping),
    (list, _listed(list)),
    (tuple, _listed(tuple)),
    (Enum, lambda value, walk: _named(value, walk.write(value.value))),
    (str, lambda value, _: _named(value, _str(str.__str__(value)))),
    (int, lambda value, _: _named(value, _int(int.__int__(value)))),
    (float, lambda value, _: _named(value, _float(float.__float__(value)))),
    (set, _unordered(set)),
    (frozenset, _unordered(frozenset)),
    (bytes, _bytes),
    (bytearray, _bytes),
    (Decimal, _decimal),
    (Mapping, _mapping),
)
