"""
A value held to a type without pydantic, whose import takes longer than the rest of a start.

Only what is plainly right is told here, and it is what pydantic makes of it in strict mode. Everything else is unsure, and
pydantic is asked: it alone says what is wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from .bounds import Bound
from .units import FromText


if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


MAX_EXACT: Final = 1 << 53
"""Whole numbers up to it are floats exactly."""


@cache
def hints(kind: type) -> Mapping[str, Any]:
    """
    Returns the types of the settings of a class, marks and all.
    """
    return get_type_hints(kind, include_extras=True)


class UnsureError(Exception):
    """
    Only pydantic can say whether a value fits its type.
    """


@dataclass(frozen=True, slots=True)
class Checked:
    """
    Mark of an `Annotated` setting that *check* looks at once its type is right; it returns the value, or raises ValueError.

    The same as pydantic's AfterValidator, without pydantic where the setting is declared.
    """

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.check, handler(source))


def fitted(kind: Any, value: Any) -> Any:
    """
    Returns the value that pydantic makes of *value* as the type *kind*; a list stands for a tuple too, as in a file.

    Raises UnsureError if that is not plain.
    """
    if kind is Any:
        return value
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(arguments, value)
    if origin is Annotated:
        return _marked(kind, value)
    if origin is Literal and type(value) is str and value in arguments:
        return value
    if origin is NotRequired:
        return fitted(arguments[0], value)
    if origin is tuple and arguments[1:] == (...,) and type(value) in (list, tuple):
        return tuple(fitted(arguments[0], item) for item in value)
    if origin is list and type(value) is list:
        return [fitted(arguments[0], item) for item in value]
    if origin is dict and type(value) is dict:
        return {fitted(arguments[0], key): fitted(arguments[1], item) for key, item in value.items()}
    if is_typeddict(kind) and isinstance(value, dict):
        return _keys(kind, value)
    raise UnsureError


def _keys(kind: Any, value: dict[str, Any]) -> dict[str, Any]:
    fields: Mapping[str, Any] = kind.__annotations__
    given = dict.copy(value)  # what it holds, whatever a class of its own makes of asking
    if not kind.__required_keys__ <= given.keys() <= fields.keys():
        raise UnsureError
    return {name: fitted(fields[name], given[name]) for name in fields if name in given}


def _exact(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise UnsureError
        return value

    return check


def _text(value: Any) -> Any:
    # Half a surrogate pair is no text to pydantic.
    if type(value) is not str or not (value.isascii() or value == value.encode(errors="ignore").decode()):
        raise UnsureError
    return value


def _number(value: Any) -> float:
    if type(value) is float or (type(value) is int and abs(value) <= MAX_EXACT):
        return float(value)
    raise UnsureError


_SCALARS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    bool: _exact(bool),
    int: _exact(int),
    NoneType: _exact(NoneType),
    str: _text,
    float: _number,
}


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    fitting = []
    for kind in kinds:
        try:
            fitting.append(fitted(kind, value))
        except UnsureError:
            continue
    # Which of several pydantic prefers is its own affair.
    if len(fitting) != 1:
        raise UnsureError
    return fitting[0]


def _marked(kind: Any, value: Any) -> Any:
    inner, *marks = get_args(kind)
    try:
        for mark in reversed(marks):
            if isinstance(mark, FromText):
                value = mark.parse(value)
        value = fitted(inner, value)
        for mark in marks:
            if isinstance(mark, Checked):
                value = mark.check(value)
            elif not (isinstance(mark, FromText) or (isinstance(mark, Bound) and mark.holds(value))):
                raise UnsureError
    except ValueError:
        raise UnsureError from None
    return value
