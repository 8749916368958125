"""
Any value as plain JSON. Raises nothing, and uses nothing up: an iterator or an open file is named, not read.

Bytes become UTF-8 text or else base64, sets lists, NaN and infinities null, decimals and paths text, pydantic models
and dataclasses objects. Integers beyond 64 bits stay exact up to 4,300 digits (hexadecimal text above), and keys become
text. A value deeper than 200 levels, a cycle, or any other type leaves `<its type>`, since a repr may be long, unstable
or secret.
"""

import base64
import json
import math
import sys

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import orjson


MAX_DEPTH: Final = 200
"""Below orjson's 254 and Python's 1,000."""
_MAX_INT_BITS: Final = 14_280
"""About 4,299 digits: Python refuses to print more than 4,300 (`sys.int_info.default_max_str_digits`)."""


def options() -> int:
    """
    Returns the flags by which orjson writes such values.

    It imports numpy (0.1 s) if it is to look for numpy's types. If no code has imported numpy, there are none.
    """
    return orjson.OPT_NON_STR_KEYS | (orjson.OPT_SERIALIZE_NUMPY if "numpy" in sys.modules else 0)


def to_json(value: Any) -> bytes:
    """
    Returns *value* as JSON.
    """
    try:
        return orjson.dumps(value, simpler, options())
    except (TypeError, ValueError, RecursionError):
        return json.dumps(plain(value), separators=(",", ":")).encode()


def plain(value: Any, most: int = sys.maxsize) -> Any:
    """
    Returns a copy of *value* that is only dicts with text keys, lists, text, finite numbers, booleans and None.

    Beyond *most* values, members included, the rest is left out.
    """
    return _Copy(most).of(value)


class _Copy:
    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most

    def of(self, value: Any, depth: int = 0, above: frozenset[int] = frozenset()) -> Any:
        self.left -= 1
        if scalar := _SCALARS.get(type(value)):
            return scalar(value)

        if depth >= MAX_DEPTH or id(value) in above:
            return name_of(value)

        above |= {id(value)}
        try:
            # A list first: a thread may change the container meanwhile.
            if isinstance(value, dict):
                pairs = list(islice(value.items(), max(self.left, 0)))
                return {_key(key): self.of(each, depth + 1, above) for key, each in pairs if self.left > 0}

            if isinstance(value, list | tuple):
                members = list(islice(value, max(self.left, 0)))
                return [self.of(each, depth + 1, above) for each in members if self.left > 0]

            inside = _inside(value)
            self.left += 1
            return self.of(inside, depth + 1, above)
        except Exception:  # noqa: BLE001  whatever the object's own methods raise
            return name_of(value)


def _inside(value: Any) -> Any:
    if isinstance(value, orjson.Fragment):
        return json.loads(orjson.dumps(value))

    # By its fields: orjson would not stop at any size, and what one field holds may keep it from writing the others.
    if is_dataclass(value):
        return simpler(value)

    try:
        return orjson.loads(orjson.dumps(value, option=options()))
    except (TypeError, ValueError):
        return simpler(value)


def simpler(value: Any) -> Any:
    """
    Returns *value*, of a type that JSON does not know, as one that it does, one level deep.
    """
    for types, simpler in _SIMPLER:
        if isinstance(value, types):
            return simpler(value)

    if is_dataclass(value) and not isinstance(value, type):
        # As orjson has it, what begins with an underscore is left out.
        return {each.name: getattr(value, each.name) for each in fields(value) if each.name[0] != "_"}

    if hasattr(type(value), "model_dump"):
        return value.model_dump()

    return value.__fspath__() if hasattr(type(value), "__fspath__") else name_of(value)


def _key(key: Any) -> str:
    return key if type(key) is str else str(plain(key))


def _text(data: bytes | bytearray | memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def name_of(value: object) -> str:
    """
    Returns the text for a value that has no other form.
    """
    return f"<{type(value).__qualname__}>"


_SIMPLER: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((bytes, bytearray, memoryview), _text),
    ((set, frozenset), lambda value: sorted(value, key=repr)),
    (Mapping, dict),
    (Decimal, str),
)


_SCALARS: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    str: lambda value: value,
    int: lambda value: value if value.bit_length() <= _MAX_INT_BITS else hex(value),
    float: lambda value: value if math.isfinite(value) else None,
}
