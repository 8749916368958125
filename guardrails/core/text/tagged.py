"""
The slow path of the canonical form: any Python value, as JSON with tags.

A plain value gets the bytes that the fast path would give it. A value that JSON cannot express is tagged, `{
"!set":[1,2]}`. This is valid JSON, but a canonical plain value has no space outside of its strings, so a tagged value
never equals a plain one.

Containers are what they hold: a tuple is a list, any mapping is a dict. Every other type is itself. Sets, bytes, enums,
dataclasses, pydantic models and subclasses of str, int and float are tagged, with the class's name if it tells them
apart.
"""

import re
import unicodedata

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import Enum
from itertools import islice
from math import isinf
from typing import Any, Final

from orjson import OPT_SORT_KEYS, Fragment, dumps


MAX_DEPTH: Final = 254
"""Containers within each other: as many as orjson writes; two frames each leave a caller half of Python's 1,000."""
MAX_VALUES: Final = 1 << 18
"""Values in one form: a list that holds another twice, which holds another twice, and so on, has exponentially many."""
MAX_APART: Final = 1 << 13
"""Characters of text in another normal form than C: to normalise combining marks takes quadratic time."""

TAG: Final = b'{ "!'
"""The beginning of each tagged value; a string of a plain one may hold it too."""

_DECIMAL_BITS: Final = 2_048
"""Longer integers are written in hexadecimal: 616 digits are converted under any limit of `sys.set_int_max_str_digits`."""
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_OPAQUE: Final = re.compile(r"^<|\b0x[0-9A-Fa-f]{6}|\.\.\.|\*\*\*")
"""A description, an address, something left out, something masked: two different values may look the same."""


class Unsignable(Exception):
    """
    The value has no canonical form.
    """


def tagged(value: object) -> bytes:
    """
    Returns the canonical form of any value: JSON in UTF-8.

    Raises `Unsignable` for cycles, and for more than `MAX_DEPTH` levels, `MAX_VALUES` values or `MAX_APART` characters
    that are to be normalised. It is raised too for an object of which only an address, a `<description>` or a shortened
    or masked repr is known. Errors of the value's own code pass through.
    """
    return _json(_Walk().of(value))


class _Walk:
    """
    One walk through a value, of which it makes what orjson writes canonically.
    """

    def __init__(self) -> None:
        self.depth, self.left, self.apart = 0, MAX_VALUES, MAX_APART

    def of(self, value: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Unsignable
        kind = type(value)
        if kind is str:
            return self._text(value)
        if kind is int or (kind is float and value.is_integer()):
            return _integer(int(value))
        if kind is float:
            return _tag("float", str(value)) if isinf(value) else value
        if value is None or kind is bool:
            return value
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsignable
        made = self._compound(value, kind)
        self.depth -= 1
        return made

    def _compound(self, value: Any, kind: Any) -> Any:
        for base in (list, tuple, set, frozenset):
            if issubclass(kind, base):
                members = map(self.of, base.__iter__(value))
                return [*members] if base in (list, tuple) else _tag("set", _sorted(members))
        if issubclass(kind, bytes | bytearray):
            return _tag("bytes", memoryview(value).hex())
        if issubclass(kind, dict):
            return self._mapping([*dict.items(value)])
        if issubclass(kind, Mapping):
            return self._mapping([(key, value[key]) for key in islice(value, self.left + 1)])
        return _tag("object", [self._text(kind.__qualname__), self.of(_state(value, kind))])

    def _mapping(self, pairs: list[tuple[Any, Any]]) -> Any:
        named = {self._text(key): item for key, item in pairs if type(key) is str}
        if len(named) == len(pairs) and all(type(key) is str for key in named):
            return {key: self.of(item) for key, item in named.items()}
        return _tag("dict", _sorted([self.of(key), self.of(item)] for key, item in pairs))

    def _text(self, value: str) -> Any:
        if not value.isascii() and not unicodedata.is_normalized("NFC", value):
            self.apart -= len(value)
            if self.apart < 0:
                raise Unsignable
            value = unicodedata.normalize("NFC", value)
        try:
            value.encode()
        except UnicodeEncodeError:
            return _tag("str", value.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode())
        return value


def _json(made: Any) -> bytes:
    return dumps(made, None, OPT_SORT_KEYS)


def _sorted(members: Iterable[Any]) -> list[Any]:
    return [*map(Fragment, sorted(map(_json, members)))]


def _tag(name: str, made: Any) -> Any:
    return Fragment(b'{ "!%b":%b}' % (name.encode(), _json(made)))


def _integer(value: int) -> Any:
    if value.bit_length() < 64:
        return value
    return Fragment(b"%d" % value) if value.bit_length() < _DECIMAL_BITS else _tag("int", hex(value))


def _state(value: Any, kind: Any) -> Any:
    """
    Returns the state of a value of no plain type: its plain value, its fields, its members, its ISO format or its repr.
    """
    if issubclass(kind, Enum):
        return value.value
    for base, plain in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if issubclass(kind, base):
            return plain(value)
    if issubclass(kind, Decimal):
        return str(Decimal.normalize(value, _EXACT)) if value else "0"
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else getattr(kind, "__pydantic_fields__", None)
    if names is not None:
        extra = getattr(value, "__pydantic_extra__", None) or {}
        return {**{name: getattr(value, name) for name in names if hasattr(value, name)}, **extra}
    if hasattr(kind, "tolist"):
        # Exact, while an array's repr is rounded and shortened.
        return value.tolist()
    if hasattr(kind, "isoformat"):
        return value.isoformat()
    text = repr(value)
    if kind.__repr__ is object.__repr__ or _OPAQUE.search(text):
        raise Unsignable
    return text
