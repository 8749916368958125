"""
The types of settings: a value is held to one, each fault of it is told at its place, and an editor's JSON Schema is made of it.

Promises, each with a test:

* A type is a Python annotation. Its marks are `FromText`, `Checked`, and bounds, ours or those of annotated_types. Of a type or a mark
  that is none of these pydantic is asked, once such a value is given: its import takes longer than all the rest of a start.
* Nothing is guessed: a whole number stands for a float and a list for a tuple, and no other value for one of another kind.
* All faults are told at once. Of a union those of the alternative that was meant.
"""

import ast
import dataclasses
import inspect
import json
import operator

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, Union, get_args, get_origin, get_type_hints


Path = tuple[str | int, ...]
Schema = dict[str, Any]


class Fault(NamedTuple):
    """
    A fault in a value; *path* leads to it, or to the key that is wrong.
    """

    path: Path
    value: Any
    said: str = ""
    """Without the value, where that is to be *shown*."""
    shown: bool = False
    expected: tuple[str, ...] = ()
    """The kinds of value that were wanted, in place of *said*."""
    choices: tuple[str, ...] = ()
    kind: Literal["value", "whole", "missing", "unknown", "key"] = "value"
    """`whole`: settings that are each valid do not go together. `missing`, `unknown`, `key`: about a key of a map."""

    def sentence(self, got: str, fix: str = "") -> str:
        """
        Returns what is wrong with the value, which is shown as *got*, and how it is to be written instead: *fix*.
        """
        if not self.expected:
            return f"{self.said}, got {got}" if self.shown else self.said
        near = suggestion(self.value, self.choices) if isinstance(self.value, str) else ""
        return f"not {' or '.join(self.expected)}: {fix}got {got}{near}"


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


Ge, Gt, Le = (partial(Bound, name) for name in ("ge", "gt", "le"))
"""At least, more than, at most so much."""
MinLen, MaxLen = (partial(Bound, name) for name in ("min_length", "max_length"))
"""So many characters or elements at least, at most."""


class FromText:
    """
    A mark of a setting that text may stand for: *parse* makes its value before the type is checked, or raises ValueError.

    The *schema* is the JSON Schema of all that may be written; None stands for that of the type.
    """

    def __init__(self, parse: Callable[[object], Any], schema: Schema | None = None) -> None:
        self.parse, self.schema = parse, schema


class Checked:
    """
    A mark of a setting that *check* looks at once its type is right: it returns the value, or raises ValueError.
    """

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self.check = check


@dataclasses.dataclass(eq=False)
class MapType:
    """
    The type of a map of named settings.
    """

    name: str
    types: dict[str, Any]
    required: frozenset[str] = frozenset()
    doc: str | None = None
    make: Callable[..., Any] = dict
    """Makes the value of the settings; it may raise ValueError."""
    of: type | None = None
    """The class that declares them."""
    look: Callable[[Any], "Iterable[Fault]"] = lambda _: ()
    """Further faults of a map as it is given."""
    only: str = ""
    """A sentence on what keys there are, for who names another."""


@dataclasses.dataclass(eq=False)
class ByKey:
    """
    The type of a map whose kind one of its keys names.
    """

    name: str
    kinds: Mapping[str, MapType]

    def fit(self, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
        """
        Returns the value and its faults, as the function of this name.
        """
        kind = (
            next((self.kinds[key] for key in value if key in self.kinds), None) if isinstance(value, Mapping) else None
        )
        if kind is None:
            named = f"a {self.name} is a map of keys, one of them {', '.join(map(quoted, self.kinds))}"
            return value, [Fault(path, value, named, shown=True)]
        made, faults = fit(kind, value, path)
        known = {(*path, key) for one in self.kinds.values() for key in one.types}
        for at, fault in enumerate(faults):
            if fault.kind == "unknown" and fault.path in known:
                faults[at] = fault._replace(said=f"{quoted(str(fault.path[-1]))} does not go with the other keys here")
        return made, faults


_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str, tuple[str, str]]]] = {
    "ge": (operator.ge, "must be at least {}", ("minimum", "")),
    "gt": (operator.gt, "must be above {}", ("exclusiveMinimum", "")),
    "le": (operator.le, "must be at most {}", ("maximum", "")),
    "lt": (operator.lt, "must be below {}", ("exclusiveMaximum", "")),
    "min_length": (operator.ge, "must have a length of at least {}, got {}", ("minLength", "minItems")),
    "max_length": (operator.le, "must have a length of at most {}, got {}", ("maxLength", "maxItems")),
}
_SCALARS: Final[Mapping[Any, tuple[str, str]]] = {
    bool: ("true or false", "boolean"),
    int: ("a whole number", "integer"),
    float: ("a number", "number"),
    str: ("text", "string"),
    **dict.fromkeys((None, NoneType), ("null", "null")),
}


def _map_type(kind: Any) -> Any:
    """
    Returns the `MapType` of *kind*, a dataclass or a `TypedDict`; None if it is neither.
    """
    fields = [field for field in dataclasses.fields(kind) if field.init] if dataclasses.is_dataclass(kind) else []
    if isinstance(kind, MapType) or not (isinstance(kind, type) and (fields or hasattr(kind, "__required_keys__"))):
        return kind if isinstance(kind, MapType) else None
    types, missing = {field.name: field.type for field in fields}, dataclasses.MISSING
    if not fields or not kind.__module__.startswith("guardrails."):
        # Ours are written out: to look for names in them took a tenth of a start. What is not known is told once it is given.
        with suppress(NameError):
            found = get_type_hints(kind, include_extras=True)
            types = {name: found[name] for name in types or found}
    required = frozenset(one.name for one in fields if one.default is missing and one.default_factory is missing)
    required |= getattr(kind, "__required_keys__", frozenset())
    return MapType(kind.__name__, types, required, kind.__doc__ or "", make=kind if fields else dict, of=kind)


map_type: Final[Callable[[Any], Any]] = cache(_map_type)


# A value and its type


def fit(kind: Any, value: Any, path: Path = ()) -> "tuple[Any, list[Fault]]":
    """
    Returns the value that *value* is as the type *kind*, and the faults in it; with a fault the value is nobody's.
    """
    if kind is Any:
        return value, []
    if kind in _SCALARS:
        return _scalar(kind or NoneType, value, path)
    by_form = _FORMS.get(get_origin(kind))
    if by_form is not None:
        return by_form(kind, value, path)
    if isinstance(kind, ByKey):
        return kind.fit(value, path)
    keys = map_type(kind)
    if keys is None:
        return (value, []) if isinstance(kind, type) and isinstance(value, kind) else _by_pydantic(kind, value, path)
    # What code has made is looked at too: its class has taken all that it was given.
    return _map(keys, {name: getattr(value, name) for name in keys.types} if type(value) is keys.of else value, path)


def _wrong(path: Path, value: Any, *expected: str) -> list[Fault]:
    return [Fault(path, value, expected=expected)]


def _scalar(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    if kind is float and type(value) is int:
        return float(value), []
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return value, _wrong(path, value, _SCALARS[kind][0])
    if kind is str and not value.isascii() and value != value.encode(errors="ignore").decode():
        return value, [Fault(path, value, "half a character, which UTF-8 cannot write", shown=True)]
    return value, []


def _literal(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    words = get_args(kind)
    if any(value == word and isinstance(value, type(word)) for word in words):
        return value, []
    choices = tuple({True: "true", False: "false"}[word] if isinstance(word, bool) else str(word) for word in words)
    listed = "one of " * (len(choices) > 1) + ", ".join(map(quoted, choices))
    return value, [Fault(path, value, expected=(listed,), choices=choices)]


def _list(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    make, (item, *more) = get_origin(kind), get_args(kind)
    if not isinstance(value, (list, tuple)):
        return value, _wrong(path, value, "a list")
    if make is tuple and more != [...]:
        return _by_pydantic(kind, value, path)
    made = [fit(item, one, (*path, place)) for place, one in enumerate(value)]
    return make(one for one, _ in made), [fault for _, faults in made for fault in faults]


def _dict(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    if not isinstance(value, Mapping):
        return value, _wrong(path, value, "a map of keys")
    of_key, of_value = get_args(kind)
    made, faults = {}, list[Fault]()
    for key, one in value.items():
        name, wrong = fit(of_key, key, (*path, key))
        made[name], below = fit(of_value, one, (*path, key))
        faults += [*(fault._replace(kind="key") for fault in wrong), *below]
    return made, faults


def _map(keys: MapType, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    if not isinstance(value, Mapping):
        return value, _wrong(path, value, "a map of keys")
    known, made, faults = keys.types, {}, [fault._replace(path=(*path, *fault.path)) for fault in keys.look(value)]
    faults += [Fault((*path, key), value, _unknown(key, keys), kind="unknown") for key in value if key not in known]
    missing = (key for key in known if key in keys.required and key not in value)
    faults += [Fault(path, value, f"missing key {quoted(key)}", kind="missing") for key in missing]
    for key, kind in known.items():
        if key in value:
            made[key], below = fit(kind, value[key], (*path, key))
            faults += below
    try:
        return value if faults else keys.make(**made), faults
    except ValueError as error:
        return value, [_refused(path, value, error)]


def _refused(path: Path, value: Any, error: Exception) -> Fault:
    return Fault(path, value, " ".join(str(error).split()), kind="whole" if isinstance(value, Mapping) else "value")


def _unknown(key: object, keys: MapType) -> str:
    known = [*keys.types]
    near = suggestion(str(key), known)
    below = [f"{name}.{key}" for name, kind in keys.types.items() for one in _map_types(kind) if key in one.types][:3]
    if below and not near:
        near = f", did you mean {' or '.join(map(quoted, below))}?"
    if not near and len(known) <= 12:
        near = f", known here: {', '.join(map(quoted, known))}{keys.only}"
    return f"unknown key {quoted(str(key))}{near}"


def _map_types(kind: Any) -> Iterator[MapType]:
    if get_origin(kind) in (Union, UnionType, Annotated):
        for one in get_args(kind):
            yield from _map_types(one)
    elif isinstance(kind, type | MapType) and (keys := map_type(kind)) is not None:
        yield keys


def _one_of(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    kinds = get_args(kind)
    if value is None and NoneType in kinds:
        return None, []
    tried = [fit(each, value, path) for each in kinds if each is not NoneType]
    fitting = [made for made, faults in tried if not faults]
    if fitting:
        return next((made for made in fitting if type(made) is type(value)), fitting[0]), []
    refused = [fault for _, faults in tried for fault in faults if fault.path == path and fault.expected]
    meant = [faults for _, faults in tried if not any(fault in refused for fault in faults)]
    if meant:
        return value, min(meant, key=len)
    expected = tuple(dict.fromkeys(one for fault in refused for one in fault.expected))
    return value, [
        Fault(path, value, expected=expected, choices=tuple(one for fault in refused for one in fault.choices))
    ]


def _marks(kind: Any) -> Iterator[Any]:
    for mark in kind.__metadata__:
        yield from mark if getattr(mark, "__is_annotated_types_grouped_metadata__", False) else (mark,)


def _marked(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    marks = list(_marks(kind))
    limits = [(name, getattr(mark, name)) for mark in marks for name in _BOUNDS if hasattr(mark, name)]
    ours = [mark for mark in marks if isinstance(mark, (FromText, Checked))]
    if len(limits) + len(ours) < len(marks):
        return _by_pydantic(kind, value, path)
    try:
        for mark in ours:
            value = mark.parse(value) if isinstance(mark, FromText) else value
        made, faults = fit(kind.__origin__, value, path)
        if faults:
            return value, faults
        for mark in ours:
            made = mark.check(made) if isinstance(mark, Checked) else made
    except ValueError as error:
        return value, [_refused(path, value, error)]
    for name, limit in limits:
        (holds, said, _), of_length = _BOUNDS[name], "length" in name
        size = len(made) if of_length else made
        if limit is not None and not holds(size, limit):
            faults.append(Fault(path, made, said.format(limit, size), shown=not of_length))
    return made, faults


def _by_pydantic(kind: Any, value: Any, path: Path) -> "tuple[Any, list[Fault]]":
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = ""  # an object of code
    try:
        adapter: Any = TypeAdapter(kind)
        return adapter.validate_json(text, strict=True) if text else adapter.validate_python(value, strict=True), []
    except (PydanticUserError, NameError) as error:
        why = str(error).partition("\n")[0].partition(". ")[0]
        return value, [
            Fault(path, value, f"the type `{getattr(kind, '__name__', None) or kind}` cannot be checked: {why}")
        ]
    except ValidationError as error:
        return value, [_of_pydantic(one, path) for one in error.errors(include_url=False)]


def _of_pydantic(error: Any, path: Path) -> Fault:
    own = error.get("ctx", {}).get("error")
    said = " ".join(str(error["msg"] if own is None else own).split()).rstrip(".").replace("Input should be", "must be")
    return Fault(
        (*path, *error["loc"]), error["input"], said if own else f"{said[:1].lower()}{said[1:]}", shown=own is None
    )


_FORMS: Final[Mapping[Any, Callable[[Any, Any, Path], "tuple[Any, list[Fault]]"]]] = {
    **dict.fromkeys((Union, UnionType), _one_of),
    **dict.fromkeys((list, tuple), _list),
    dict: _dict,
    Literal: _literal,
    Annotated: _marked,
    NotRequired: lambda kind, value, path: fit(get_args(kind)[0], value, path),
}


# A type as JSON Schema


def json_schema(kind: Any, named: dict[str, Schema]) -> Schema:
    """
    Returns the JSON Schema (draft 2020-12) of the type *kind*. The schemas of maps of settings go into *named*, its `$defs`.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return {"type": _SCALARS[kind][1]}
    if origin in (Union, UnionType):
        return {"anyOf": [json_schema(one, named) for one in arguments]}
    if origin is Annotated:
        return _with_marks(kind, named)
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is NotRequired:
        return json_schema(arguments[0], named)
    if origin in (list, tuple):
        return {"type": "array", "items": json_schema(arguments[0], named)}
    if origin is dict:
        return {"type": "object", "additionalProperties": json_schema(arguments[1], named)}
    if isinstance(kind, ByKey):
        return {"anyOf": [json_schema(one, named) for one in kind.kinds.values()]}
    keys = None if kind is Any else map_type(kind)
    if keys is None:
        return {}
    if keys.name not in named:
        named[keys.name] = {}  # it may stand in itself
        named[keys.name] |= _of_map(keys, named)
    return {"$ref": f"#/$defs/{keys.name}"}


def _of_map(keys: MapType, named: dict[str, Schema]) -> Schema:
    said = _docstrings(keys.of) if keys.of is not None else {}
    said |= {other: said[name] for other, name in getattr(keys.of, "aliases", {}).items() if name in said}
    known = {name: json_schema(one, named) for name, one in keys.types.items()}
    known |= {name: known[name] | {"description": said[name]} for name in known if name in said}
    made: Schema = {"type": "object", "properties": known, "additionalProperties": False}
    made |= {"description": inspect.cleandoc(keys.doc)} if keys.doc else {}
    return made | ({"required": [name for name in known if name in keys.required]} if keys.required else {})


def _with_marks(kind: Any, named: dict[str, Schema]) -> Schema:
    made = json_schema(kind.__origin__, named)
    for mark in _marks(kind):
        if isinstance(mark, FromText) and mark.schema is not None:
            made = dict(mark.schema)
        for name, (_, _, (of_value, of_list)) in _BOUNDS.items():
            limit = getattr(mark, name, None)
            if limit is not None and made.get("type") in ("integer", "number", "string", "array"):
                made |= {of_list if made["type"] == "array" else of_value: limit}
    return made


def _docstrings(kind: type) -> dict[str, str]:
    """
    Returns the meaning of each setting of the class *kind*: the text below it.
    """
    import textwrap

    body: list[Any] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    fields = {getattr(field, "target", None): below for field, below in pairwise(body)}
    return {
        field.id: " ".join(str(below.value.value).split())
        for field, below in fields.items()
        if isinstance(field, ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }
