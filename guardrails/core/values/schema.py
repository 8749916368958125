"""
The types of settings: a value is held to one, each fault of it is told at its place, and an editor's JSON Schema is made of it.

Promises, each with a test:

* A type is a Python annotation. Its marks are `FromText`, `Checked`, and bounds, ours or those of annotated_types. Of a type or a mark
  that is none of these pydantic is asked, once such a value is given: its import takes longer than all the rest of a start.
* Nothing is guessed: a whole number stands for a float and a list for a tuple, and no other value for one of another kind.
* All faults are told at once. Of a union those of the first alternative for such a kind of value.
"""

import dataclasses
import inspect
import operator

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, Union, get_args, get_origin, get_type_hints

from .errors import PolicyError


Path = tuple[str | int, ...]
Schema = dict[str, Any]


class Fault(NamedTuple):
    """
    A fault in a value; *path* leads to it, or to the key that is wrong.
    """

    path: Path
    value: Any
    text: str = ""
    expected: tuple[str, ...] = ()
    """The kinds of value that were wanted, in place of *said*."""
    near: str = ""
    """The word that was probably meant, as `suggestion` has it."""
    kind: Literal["value", "missing", "key"] = "value"
    """About a value, about a key that is missing, about the key that *path* ends with."""

    def sentence(self, got: str, fix: str = "") -> str:
        """
        Returns what is wrong with the value, which is shown as *got*, and how it is to be written instead: *fix*.
        """
        return f"not {' or '.join(self.expected)}: {fix}got {got}{self.near}" if self.expected else self.text


def quoted(text: str, shown: int = 60) -> str:
    """
    Returns *text* in backticks, cut after *shown* characters.
    """
    return f"`{text}`" if len(text) <= shown else f"`{text[:shown]}...`"


def suggestion(written: str, names: Sequence[str]) -> str:
    """
    Returns ", did you mean ...?" with the one of *names* that is nearest to *written*, or "" if none is near.
    """
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in names}
    near = get_close_matches(written.casefold().replace("-", "_"), folded, 1)
    return f", did you mean {quoted(folded[near[0]])}?" if near else ""


# Marks of an `Annotated` setting, and maps


class Bound:
    """
    A mark that holds a value to a limit, by the name that annotated_types has for it.
    """

    def __init__(self, name: str, limit: float) -> None:
        setattr(self, name, limit)


Ge, Gt, Le, MinLen, MaxLen = (partial(Bound, name) for name in ("ge", "gt", "le", "min_length", "max_length"))
"""At least, more than, at most so much; so many characters or elements at least, at most."""


class FromText:
    """
    A mark of a setting that text may stand for: *parse* makes its value before the type is checked, or raises ValueError or PolicyError.

    The *schema* is the JSON Schema of all that may be written; None stands for that of the type.
    """

    def __init__(self, parse: Callable[[object], Any], schema: Schema | None = None) -> None:
        self.parse, self.schema = parse, schema


class Checked(NamedTuple):
    """
    A mark of a setting that *check* looks at once its type is right: it returns the value, or raises ValueError.
    """

    check: Callable[[Any], Any]


@dataclasses.dataclass(eq=False)
class MapType:
    """
    The type of a map of named settings.
    """

    name: str
    types: dict[str, Any]
    required: frozenset[str] = frozenset()
    doc: str = ""
    make: Callable[..., Any] = dict
    """Makes the value of the settings; it may raise ValueError."""
    of: type | None = None
    """The class that declares them."""
    only: str = ""
    """A sentence on what keys there are, for who names another."""


def _map_type(kind: Any) -> Any:
    """
    Returns the `MapType` of the settings that *kind*, a dataclass or a `TypedDict`, declares; None if it is neither.
    """
    if isinstance(kind, MapType):
        return kind
    if dataclasses.is_dataclass(kind):
        missing, fields = dataclasses.MISSING, [field for field in dataclasses.fields(kind) if field.init]
        types = {field.name: field.type for field in fields}
        required = frozenset(one.name for one in fields if one.default is missing and one.default_factory is missing)
    elif hasattr(kind, "__required_keys__"):
        types, required = kind.__annotations__, kind.__required_keys__
    else:
        return None
    if not kind.__module__.startswith("guardrails."):
        # Ours are written out: to look for names in them took a tenth of a start. What is not known is told once it is given.
        with suppress(NameError):
            hints = get_type_hints(kind, include_extras=True)
            types = {name: hints[name] for name in types}
    return MapType(kind.__name__, types, required, kind.__doc__ or "", kind, kind)


map_type: Final[Callable[[Any], Any]] = cache(_map_type)


# A value and its type


def fit(kind: Any, value: Any, path: Path = ()) -> "tuple[Any, list[Fault]]":
    """
    Returns the value that *value* is as the type *kind*, and the faults in it; with a fault the value is nobody's.
    """
    faults: list[Fault] = []
    return _fit(kind, value, path, faults), faults


def _fit(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    keys = None if get_origin(kind) else map_type(kind)
    if keys and type(value) is keys.of:
        # What code has made is looked at too: its class has taken all that it was given.
        value = {name: getattr(value, name) for name in keys.types}
    form = _FORMS.get(MapType if keys else get_origin(kind) or kind, _OTHER)
    if not isinstance(value, form.types) or (type(value) is bool and kind in (int, float)):
        faults.append(Fault(path, value, "", (form.expected,)))
        return value
    try:
        return form.fit(keys or kind, value, path, faults)
    except (ValueError, PolicyError) as error:
        faults.append(Fault(path, value, " ".join(str(error).split())))
    return value


def _plain(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    return float(value) if kind is float else value


def _literal(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    words = get_args(kind)
    if not any(value == word and type(value) is type(word) for word in words):
        choices = [str(word).lower() if isinstance(word, bool) else str(word) for word in words]
        listed = "one of " * (len(choices) > 1) + ", ".join(map(quoted, choices))
        near = suggestion(value, choices) if isinstance(value, str) else ""
        faults.append(Fault(path, value, "", (listed,), near))
    return value


def _list(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    (item, *more), make = get_args(kind), get_origin(kind)
    if more and more != [...]:
        return _other(kind, value, path, faults)
    return make(_fit(item, one, (*path, place), faults) for place, one in enumerate(value))


def _dict(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    of_key, of_value = get_args(kind)
    made = {}
    for key, one in value.items():
        name, wrong = fit(of_key, key, (*path, key))
        faults += [Fault(fault.path, value, fault.sentence(quoted(str(key))), kind="key") for fault in wrong]
        made[name] = _fit(of_value, one, (*path, key), faults)
    return made


def _map(keys: MapType, value: Any, path: Path, faults: list[Fault]) -> Any:
    made, before = {}, len(faults)
    for key, one in value.items():
        if key in keys.types:
            made[key] = _fit(keys.types[key], one, (*path, key), faults)
        else:
            faults.append(Fault((*path, key), value, unknown(str(key), keys), kind="key"))
    lacking = (key for key in keys.types if key in keys.required and key not in value)
    faults += [Fault(path, value, f"missing key {quoted(key)}", kind="missing") for key in lacking]
    return value if len(faults) > before else keys.make(**made)


def unknown(key: str, keys: MapType) -> str:
    """
    Returns that *keys* have no such *key*, and which it may have been meant for.
    """
    known = f", known here: {', '.join(map(quoted, keys.types))}" * (len(keys.types) <= 12)
    return f"unknown key {quoted(key)}{suggestion(key, [*keys.types]) or known + keys.only}"


def _one_of(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    tried = [fit(each, value, path) for each in get_args(kind) if each is not NoneType or value is None]
    fitting = [made for made, wrong in tried if not wrong]
    if fitting:
        return next((made for made in fitting if type(made) is type(value)), fitting[0])
    # An alternative of another kind of value was not meant.
    others = [wrong[0] for _, wrong in tried if wrong[0].path == path and wrong[0].expected]
    expected = tuple(dict.fromkeys(one for fault in others for one in fault.expected))
    unlike = [Fault(path, value, "", expected, "".join(one.near for one in others))]
    faults += next((wrong for _, wrong in tried if wrong[0] not in others), unlike)
    return value


def _marked(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    marks, made, before = kind.__metadata__, value, len(faults)
    if not all(any(hasattr(mark, name) for name in ("parse", "check", *_BOUNDS)) for mark in marks):
        return _other(kind, value, path, faults)
    for mark in marks:
        made = mark.parse(made) if isinstance(mark, FromText) else made
    made = _fit(kind.__origin__, made, path, faults)
    if len(faults) > before:
        return value
    for mark in marks:
        made = mark.check(made) if isinstance(mark, Checked) else made
    for name, limit in _limits(kind):
        size = len(made) if name.endswith("length") else made
        if not _BOUNDS[name][0](size, limit):
            got = quoted(str(value)) if size is made else size
            raise ValueError(f"must {_BOUNDS[name][1]} {limit}, got {got}")
    return made


def _limits(kind: Any) -> "list[tuple[str, Any]]":
    bounds = ((name, getattr(mark, name, None)) for mark in kind.__metadata__ for name in _BOUNDS)
    return [(name, limit) for name, limit in bounds if limit is not None]


def _other(kind: Any, value: Any, path: Path, faults: list[Fault]) -> Any:
    if kind is Any or (isinstance(kind, type) and isinstance(value, kind)):
        return value
    from pydantic import PydanticUserError, TypeAdapter, ValidationError
    from pydantic_core import to_json

    try:
        return TypeAdapter(kind).validate_json(to_json(value), strict=True)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].replace("Input should be", "must be")) from None
    except (PydanticUserError, NameError) as error:
        raise ValueError(f"the type of this setting cannot be checked: {str(error).partition('. ')[0]}") from None


class _Form(NamedTuple):
    """
    A kind of type: the Python types that stand for it, its names (ours, and that of JSON Schema), and how a value is held to it.
    """

    types: Any
    expected: str
    json: str
    fit: Callable[[Any, Any, Path, list[Fault]], Any]


_OTHER: Final = _Form(object, "", "", _other)
_FORMS: Final[Mapping[Any, _Form]] = {
    bool: _Form(bool, "true or false", "boolean", _plain),
    int: _Form(int, "a whole number", "integer", _plain),
    float: _Form((float, int), "a number", "number", _plain),
    str: _Form(str, "text", "string", _plain),
    **dict.fromkeys((None, NoneType), _Form(NoneType, "null", "null", _plain)),
    **dict.fromkeys((list, tuple), _Form((list, tuple), "a list", "array", _list)),
    dict: _Form(Mapping, "a map of keys", "object", _dict),
    MapType: _Form(Mapping, "a map of keys", "object", _map),
    **dict.fromkeys((Union, UnionType), _OTHER._replace(fit=_one_of)),
    Literal: _OTHER._replace(fit=_literal),
    Annotated: _OTHER._replace(fit=_marked),
    NotRequired: _OTHER._replace(fit=lambda kind, *given: _fit(get_args(kind)[0], *given)),
}
_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str, str]]] = {
    "ge": (operator.ge, "be at least", "minimum"),
    "gt": (operator.gt, "be above", "exclusiveMinimum"),
    "le": (operator.le, "be at most", "maximum"),
    "lt": (operator.lt, "be below", "exclusiveMaximum"),
    "min_length": (operator.ge, "have a length of at least", "min"),
    "max_length": (operator.le, "have a length of at most", "max"),
}


# A type as JSON Schema


def json_schema(kind: Any, named: dict[str, Schema]) -> Schema:
    """
    Returns the JSON Schema (draft 2020-12) of the type *kind*. The schemas of maps of settings go into *named*, its `$defs`.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    keys = None if origin else map_type(kind)
    if keys is not None:
        if keys.name not in named:
            named[keys.name] = {}  # it may stand in itself
            named[keys.name] |= _of_map(keys, named)
        return {"$ref": f"#/$defs/{keys.name}"}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Annotated:
        texts = [mark.schema for mark in kind.__metadata__ if isinstance(mark, FromText) and mark.schema is not None]
        made = texts[0] if texts else json_schema(kind.__origin__, named)
        unit = "Items" if made.get("type") == "array" else "Length"
        words = ((_BOUNDS[name][2] + unit * name.endswith("length"), limit) for name, limit in _limits(kind))
        return {**made, **dict(words)}
    below = [json_schema(one, named) for one in arguments]
    if origin in (list, tuple):
        return {"type": "array", "items": below[0]}
    if origin is dict:
        return {"type": "object", "additionalProperties": below[1]}
    return {"anyOf": below} if below else {"type": _FORMS[kind].json} if kind in _FORMS else {}


def _of_map(keys: MapType, named: dict[str, Schema]) -> Schema:
    texts = {} if keys.of is None else _docstrings(keys.of)
    texts |= {other: texts[name] for other, name in getattr(keys.of, "aliases", {}).items() if name in texts}
    known = {name: json_schema(kind, named) for name, kind in keys.types.items()}
    known = {name: {**one, "description": texts[name]} if name in texts else one for name, one in known.items()}
    made = {"type": "object", "properties": known, "additionalProperties": False}
    made |= {"required": [name for name in known if name in keys.required]} if keys.required else {}
    return {**made, "description": inspect.cleandoc(keys.doc)}


def _docstrings(kind: type) -> dict[str, str]:
    """
    Returns the meaning of each setting of the class *kind*: the text below it.
    """
    import ast

    from textwrap import dedent

    body: Any = ast.parse(dedent(inspect.getsource(kind))).body[0]
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(body.body)
        if [type(field), type(below)] == [ast.AnnAssign, ast.Expr]
    }
