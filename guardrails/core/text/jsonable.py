"""
Any Python value as a type of JSON, one level deep and without fail.
"""

from collections.abc import Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import islice
from types import NoneType
from typing import Any, Final

import orjson

from .collect import collect, decoded


BASIC: Final = (str, int, float, NoneType, dict, list, tuple)
OPTIONS: Final = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS
"""A walk over exact types, which bounds the work, does not see into subclasses and dataclasses: orjson is to refuse them."""
_MAX_SORTED: Final = 1024


def dumps(value: Any) -> bytes | None:
    """
    Returns the JSON of *value*. Returns None if orjson refuses it, or if it holds a dataclass or a subclass of a basic
    type.
    """
    try:
        return orjson.dumps(value, option=OPTIONS)
    except Exception:  # noqa: BLE001 - also what an enum's own code raises
        return None


def exact(text: bytes) -> bytes:
    """
    Returns a copy of *text* that takes no more memory than it has bytes: text of orjson keeps 4 KB and more.
    """
    # The cheapest copy of bytes there is (70 ns, `memoryview(text).tobytes()` takes 190); a slice would be *text* itself.
    return b"%b" % text


def repaired(text: str) -> str:
    """
    Returns *text* with surrogate pairs joined and lone surrogates replaced by U+FFFD: JSON is UTF-8, which has none.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain(value: Any, room: int) -> Any:
    """
    Returns *value* as one of the `BASIC` types or their subclasses, its members as they are; or as another type that
    orjson writes.

    Times and UUIDs stay; an enum is its value, bytes are as `collect.decoded` gives them. Dataclasses, pydantic models,
    mappings, rows and tables with named columns are dicts. Sets (small ones sorted), sequences, views, iterators and
    numpy's arrays are lists. Any other value is its own text, an exception with its type. A list ends if more could not
    fit *room* bytes.
    """
    if issubclass(type(value), BASIC):
        return value

    for way in (_enum, _structure, _collection, _array, _description):
        try:
            found = way(value, room)
            if issubclass(type(found), BASIC) or dumps(found) is not None:
                return found
        except Exception:  # noqa: BLE001, S112 - any code of the value may fail, and its result must not be lost
            continue

    return object.__repr__(value)


def _enum(value: Any, room: int) -> Any:
    return plain(value.value, room) if issubclass(type(value), Enum) else value


def _structure(value: Any, room: int) -> Any:
    kind = type(value)
    if issubclass(kind, type):
        return value

    if is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in fields(kind)}

    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return _dumped(dump)

    if issubclass(kind, Mapping):
        return dict(islice(value.items(), room))

    # A database's row, a pandas table: its values alone would not say what they are.
    named = hasattr(value, "keys") and (issubclass(kind, Sequence) or hasattr(value, "ndim"))
    return {key: value[key] for key in islice(value.keys(), room)} if named else value


def _dumped(dump: Any) -> Any:
    try:
        return dump(mode="json")
    except Exception:  # noqa: BLE001 - a member that pydantic cannot write; members are written one by one then
        return dump()


def _collection(value: Any, room: int) -> Any:
    kind = type(value)
    if issubclass(kind, bytes | bytearray | memoryview):
        return decoded(value, room)[0]

    if issubclass(kind, AbstractSet) and len(value) <= _MAX_SORTED:
        return _in_order(value)

    if issubclass(kind, AbstractSet | Sequence | MappingView):
        return list(islice(value, room))

    if issubclass(kind, Iterator):
        items, whole = collect(_until_failure(value), room)
        return items if whole else [*items, {"_truncated": True, "omitted": None}]

    return value


def _until_failure(items: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from items
    except Exception as error:  # noqa: BLE001 - what came before it is a result, and so is the failure
        yield repr(error)


def _in_order(members: Any) -> list[Any]:
    try:
        return sorted(members)
    except TypeError:
        return list(members)


def _array(value: Any, room: int) -> Any:
    dimensions = value.ndim
    if dimensions > 1:
        return list(islice(iter(value), room))

    return value[:room].tolist() if dimensions else value.tolist()


def _description(value: Any, room: int) -> str:
    return repr(value) if isinstance(value, BaseException) else str(value)
