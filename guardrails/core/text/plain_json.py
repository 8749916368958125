"""
Any value as plain JSON, in a bounded number of bytes. Raises nothing, whatever the value's own code does.

Enums are their values, bytes are as `decoded` gives them. Dataclasses, pydantic models, mappings,
rows and tables with named columns are objects; sets (sorted where that can be), sequences, views and numpy's arrays are lists; times, UUIDs,
decimals and paths are text. NaN and infinities are null; integers are exact up to 4,200 digits, and hexadecimal text above. Names become
text, and of two that would be one the last stays. Half a surrogate pair is U+FFFD. An iterator that fails is described. What lies deeper than `MAX_DEPTH`, or in itself, is said so.
"""

import json

from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from itertools import islice, takewhile
from math import isfinite
from typing import Any, Final

import orjson

from .control import repaired


LIMIT: Final = 65_536
"""Bytes of one result (MISSION D3), to which results are cut and at which a collection ends."""
MAX_DEPTH: Final = 200
"""Containers within each other: below orjson's 254 and Python's 1,000 frames, four of which a level takes here."""
OPTIONS: Final = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS
"""orjson is to refuse what has a form of its own here."""
_MAX_BITS: Final = 14_000
"""Python reads 4,300 digits, and to write more takes quadratic time."""

Bytes = bytes | bytearray | memoryview


def dumps(value: Any) -> bytes | None:
    """
    Returns the JSON of *value*. Returns None if orjson refuses it, or if it holds a dataclass or a subclass of a basic
    type.
    """
    try:
        return orjson.dumps(value, None, OPTIONS)
    except Exception:  # also what an enum's own code raises
        return None


def exact(text: bytes) -> bytes:
    """
    Returns a copy of *text*, for what holds it for long, that takes no more memory than it has bytes: text of orjson keeps 4 KB and more.
    """
    # The cheapest copy of bytes there is (70 ns, `memoryview(text).tobytes()` takes 190); a slice would be *text* itself.
    return b"%b" % text


def to_json(value: Any) -> bytes:
    """
    Returns *value* as JSON. An iterator is named, not read.
    """
    try:
        return orjson.dumps(value, plain, orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError, RecursionError):
        return written(plain(value))


def written(copy: Any) -> bytes:
    """
    Returns the JSON of a plain *copy*.
    """
    text = dumps(copy)
    return json.dumps(copy, ensure_ascii=False, separators=(",", ":")).encode() if text is None else text


def plain(value: Any, room: int = 1 << 62) -> Any:
    """
    Returns a copy of *value*, of dicts with text keys, lists, text, finite numbers, booleans and None. It ends once its JSON takes more than
    *room* bytes for certain. What can be used up, and what has no form but a description, is named by its type: a description may be long,
    unstable or secret.
    """
    return Copy(room).of(value)


class Copy:
    """
    The making of a plain copy, of collections within *room* bytes of JSON. A result is the library's to *consume*: iterators are read, what
    has no form is described, and a dataclass has its private fields.
    """

    __slots__ = ("above", "consumes", "room")

    def __init__(self, room: int, *, consumes: bool = False) -> None:
        self.room, self.consumes, self.above = room, consumes, set[int]()

    def of(self, value: Any) -> Any:
        kind = type(value)
        if issubclass(kind, str):
            return self._text(value)
        self.room -= 1
        if value is None or kind is bool:
            return value
        if issubclass(kind, int):
            number = int.__index__(value)
            return number if number.bit_length() <= _MAX_BITS else self._text(hex(number))
        if issubclass(kind, float):
            return float.__float__(value) if isfinite(value) else None
        if id(value) in self.above or len(self.above) >= MAX_DEPTH:
            return self._ended()
        self.above.add(id(value))
        try:
            return self._copied(value, kind)
        except RecursionError:
            return self._ended()
        except Exception:  # any code of the value may fail, and its result must not be lost
            return self.of(self._described(value))
        finally:
            self.above.discard(id(value))

    def _copied(self, value: Any, kind: type) -> Any:
        if issubclass(kind, dict):
            # At once: a thread may change it meanwhile.
            return {self._name(key): self.of(member) for key, member in self._fitting(list(dict.items(value)))}
        if issubclass(kind, list | tuple):
            form: Any = list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
        else:
            form = self._form(value, kind)
        return [self.of(member) for member in self._fitting(form)] if isinstance(form, Iterator) else self.of(form)

    def _text(self, text: str) -> str:
        self.room -= len(text) + 2
        return repaired(str.__str__(text))

    def _ended(self) -> str:
        return "[nested too deeply]"

    def _fitting(self, members: Iterable[Any]) -> Iterator[Any]:
        return takewhile(lambda _: self.room >= 0, members)

    def _name(self, key: Any) -> str:
        name = self._text(key) if issubclass(type(key), str) else self.of(key)
        return name if type(name) is str else written(name).decode()

    def _form(self, value: Any, kind: Any) -> Any:
        """
        Returns the scalar, the object or the list that *value* stands for, or an iterator over its members.
        """
        room = max(self.room, 0) + 1
        if issubclass(kind, Enum):
            return value.value
        if issubclass(kind, Bytes):
            return decoded(value, room)[0]
        if issubclass(kind, Decimal) or hasattr(kind, "__fspath__"):
            return str(value)
        if (text := dumps(value)) is not None:
            return json.loads(text)
        if callable(getattr(kind, "model_dump", None)):
            # A member of a pydantic model may be none that JSON has: members are written one by one then.
            with suppress(Exception):
                return value.model_dump(mode="json")
            return value.model_dump()
        if is_dataclass(kind):
            names = [field.name for field in fields(kind) if self.consumes or field.name[0] != "_"]
            return {name: getattr(value, name) for name in names}
        if hasattr(kind, "tolist"):
            return iter(value) if value.ndim > 1 else (value[:room] if value.ndim else value).tolist()
        if hasattr(kind, "keys") and (issubclass(kind, Mapping | Sequence) or hasattr(value, "ndim")):
            # A database's row, a pandas table: its values alone would not say what they are.
            return {key: value[key] for key in islice(value.keys(), room)}
        return self._members(value, kind)

    def _members(self, value: Any, kind: type) -> Any:
        if issubclass(kind, AbstractSet):
            with suppress(TypeError):
                return iter(sorted(value))
            return iter(sorted(value, key=repr))
        if issubclass(kind, Sequence | MappingView | (Iterator if self.consumes else Sequence)):
            return iter(value)
        return self._described(value)

    def _described(self, value: Any) -> str:
        if not self.consumes:
            return f"<{type(value).__qualname__}>"
        with suppress(Exception):
            return repr(value) if isinstance(value, BaseException) else str(value)
        return object.__repr__(value)


# Values that a tool hands over piecemeal, or as raw bytes


class Items:
    """
    What is *taken* from an iterator, about *room* bytes of JSON.
    """

    def __init__(self, room: int) -> None:
        self.taken, self.room = list[Any](), room

    def add(self, item: Any) -> bool:
        """
        Take *item*, the last one if it crosses the limit. Returns False if there was no room for it.
        """
        if self.room <= 0:
            return False
        item = decoded(item)[0] if issubclass(type(item), Bytes) else item
        self.taken.append(item)
        self.room -= len(to_json(item)) + 1
        return True


def collect(items: Iterator[Any], limit: int = LIMIT) -> tuple[list[Any], bool]:
    """
    Returns the items as a list, and whether that is all of them.

    Ends after *limit* bytes (the item that crosses the limit is the last); then the iterator is closed. Raises what the iterator raises.
    """
    made = Items(limit)
    try:
        return made.taken, all(map(made.add, items))
    finally:
        # A tool that fails while it is told to stop has still given what it gave.
        with suppress(Exception):
            getattr(items, "close", lambda: None)()


async def collect_async(items: Any, limit: int = LIMIT) -> tuple[list[Any], bool]:
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
            await items.aclose()
    return made.taken, True


def taken(value: Any, limit: int = LIMIT) -> tuple[Any, bool]:
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


def decoded(data: Bytes, limit: int = LIMIT) -> tuple[str | dict[str, Any], bool]:
    """
    Returns bytes as text if they are UTF-8 without NUL, else as `{"base64": "...", "bytes": n}`, of which *n* is the whole length and
    base64 takes at most *limit* bytes; and whether all is there.
    """
    data, room = bytes(data), limit * 3 // 4
    if b"\x00" not in data:
        with suppress(UnicodeDecodeError):
            return data.decode(), True
    return {"base64": b2a_base64(data[:room], newline=False).decode("ascii"), "bytes": len(data)}, len(data) <= room
