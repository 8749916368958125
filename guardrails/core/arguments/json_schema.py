"""
Check arguments against a JSON Schema (the tools of an MCP server): nothing is coerced, no default is written.
"""

import copy
import json

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem

from .problems import Kind, Path, as_object, capped, clean, dotted, missing, of_union, quoted, type_name, unknown
from .schema import for_model, names_at
from .visits import Visits, head


if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


_WORDING: Final[Mapping[str, tuple[str, Kind]]] = {
    "Minimum": ("must be at least {limit}", "value"),
    "Maximum": ("must be at most {limit}", "value"),
    "ExclusiveMinimum": ("must be greater than {limit}", "value"),
    "ExclusiveMaximum": ("must be less than {limit}", "value"),
    "MultipleOf": ("must be a multiple of {multiple_of}", "value"),
    "MinLength": ("must have at least {limit} characters", "value"),
    "MaxLength": ("must have at most {limit} characters", "value"),
    "Pattern": ("must match the pattern `{pattern}`", "value"),
    "Format": ("must be a valid `{format}`", "type"),
    "MinItems": ("must have at least {limit} items", "value"),
    "MaxItems": ("must have at most {limit} items", "value"),
    "UniqueItems": ("must not repeat an item", "value"),
    "Contains": ("lacks an item that it must contain", "value"),
    "MinProperties": ("must have at least {limit} fields", "value"),
    "MaxProperties": ("must have at most {limit} fields", "value"),
    "AdditionalItems": ("has more items than allowed", "value"),
    "UnevaluatedItems": ("has more items than allowed", "value"),
    "PropertyNames": ("has a field of a name that is not allowed", "unknown"),
    "OneOfMultipleValid": ("fits more than one of the allowed forms", "value"),
    "FalseSchema": ("is not allowed", "unknown"),
}

_TYPES: Final[Mapping[str, str]] = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


_MAX_VISITS: Final = 30_000
"""Of schemas to values, up to which errors are built: each visit may be one, and one takes 1.5 kB and more."""
_WIDTHS: Final = (None, 64, 8, 2)
_OF_SIZE: Final = frozenset({"Contains", "MinItems", "MinProperties", "Required"})


class SchemaArguments:
    """
    Arguments defined by a JSON Schema of an object (drafts 4 to 2020-12; the newest if `$schema` names no draft).

    Formats are asserted, except `regex`, which means another dialect to most tools. Raises PolicyError if *definition*
    is no valid schema, is not of an object, or refers to another document. Other documents are never fetched.
    """

    __slots__ = ("_definition", "_is_valid", "_iter_errors", "_validate", "_visits")

    def __init__(self, definition: Mapping[str, Any]) -> None:
        import jsonschema_rs

        try:
            validator = jsonschema_rs.validator_for(
                dict(definition),
                retriever=refuse,
                validate_formats=True,
                formats={"regex": _any_text},
            )
            self._definition = copy.deepcopy(dict(definition))
        except Exception as error:  # noqa: BLE001  # a schema that is no JSON fails in many ways
            raise PolicyError([f"the schema of the arguments is not valid{_where(error)}"]) from None

        kinds = definition.get("type", "object")

        if kinds != "object" and "object" not in kinds:
            raise PolicyError([f"the schema of the arguments must be of an object, not of {quoted([kinds])}"])

        self._is_valid = validator.is_valid
        self._iter_errors = validator.iter_errors
        self._validate = validator.validate
        self._visits: Visits | None = None

    def schema(self) -> dict[str, Any]:
        """
        Returns the definition in the form providers take (see `schema.for_model`), a fresh copy.
        """
        return copy.deepcopy(for_model(self._definition))

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        """
        Returns *arguments* themselves, not a copy, and their problems; never raises.
        """
        if type(arguments) is not dict:
            arguments, problems = as_object(arguments)

            if problems:
                return arguments, problems

        try:
            if self._is_valid(arguments):
                return arguments, ()

            return arguments, self._problems(arguments)
        except Exception as error:  # noqa: BLE001  # data that is not JSON: deeper than 255, a non-string key, a Python object
            return arguments, (Problem("", clean(f"the arguments cannot be checked: {_reason(error)}"), "type"),)

    def _problems(self, arguments: object) -> tuple[Problem, ...]:
        """
        Returns the problems of *arguments*. The validator builds all errors before it gives one. So only the first
        parts of arrays and objects are looked at if arguments may have very many.
        """
        if self._visits is None:
            self._visits = Visits(self._definition)

        for width in _WIDTHS:
            given = arguments if width is None else head(arguments, width)

            if not self._too_many(self._visits, given):
                told = capped(
                    problem
                    for error in self._iter_errors(given)
                    if given is arguments or not _of_the_cut(error, given, arguments)
                    for problem in self._told(error, given)
                )

                if told:
                    return told

        return self._first(arguments) or (Problem("", "the arguments do not fit the schema", "value"),)

    def _too_many(self, visits: Visits, given: object) -> bool:
        counted = visits.of(given, _MAX_VISITS)

        return counted is None or counted[0] > _MAX_VISITS

    def _first(self, arguments: object) -> tuple[Problem, ...]:
        """
        Returns the first error alone, if it cannot contain those of alternatives.
        """
        import jsonschema_rs

        if self._visits is not None and not self._visits.has_unions:
            try:
                self._validate(arguments)
            except jsonschema_rs.ValidationError as error:
                return capped(self._told(error, arguments))

        return ()

    def _told(self, error: "ValidationError", arguments: object) -> Iterator[Problem]:
        """
        Returns *error* in our words. Its own message is not used: it repeats the value, which may be a secret.
        """
        path = _keys(error.instance_path, arguments)
        field = dotted(path)
        name = type(error.kind).__name__
        kind: Any = error.kind

        if name == "Required":
            yield missing((*path, kind.property))
        elif name in {"AdditionalProperties", "UnevaluatedProperties"}:
            yield from (unknown((*path, each), names_at(self._definition, path)) for each in kind.unexpected)
        elif name == "FalseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
            # `additionalProperties: false` without `properties` is reported once and without names.
            yield from (unknown((*path, each), ()) for each in at(arguments, path))
        elif name == "Type":
            yield Problem(field, f"must be {_or(kind.types)}, not {type_name(at(arguments, path))}", "type")
        elif name in {"Enum", "Constant"}:
            options = kind.options if name == "Enum" else [kind.expected_value]
            yield Problem(field, f"must be {'one of ' * (len(options) > 1)}{quoted(map(json.dumps, options))}", "type")
        elif name in {"AnyOf", "OneOfNotValid"}:
            branches = [[each for e in branch for each in self._told(e, arguments)] for branch in kind.context]
            yield from of_union(field, branches)
        else:
            wording, of_kind = _WORDING.get(name, ("does not fit `{name}`", "value"))
            yield Problem(field, wording.format(**{"name": kind.name, **kind.as_dict()}), of_kind)


def _of_the_cut(error: "ValidationError", cut: object, arguments: object) -> bool:
    """
    Returns whether *error* may be there only since *cut* has not all of *arguments*.
    """
    if type(error.kind).__name__ not in _OF_SIZE:
        return False

    path = _keys(error.instance_path, cut)

    return len(at(cut, path)) != len(at(arguments, path))


def refuse(uri: str) -> Any:
    """
    Raise ValueError: what a schema refers to elsewhere is not read.
    """
    raise ValueError(f"`{uri}` is another document, which is never fetched")


def _where(error: Exception) -> str:
    """
    Returns the place in the schema that *error* is about, and what it says.
    """
    place = dotted(tuple(getattr(error, "instance_path", ())))
    reason = (getattr(error, "message", None) or str(error)).rpartition("ValueError: ")[2]

    return f"{f' at `{place}`' if place else ''}: {clean(reason[:1].lower() + reason[1:])}"


def _any_text(text: str) -> bool:
    return True


def _reason(error: Exception) -> str:
    text = str(error)

    # The texts of plain ValueErrors are the validator's own and name types only.
    return text[:1].lower() + text[1:] if type(error) is ValueError else f"`{type(error).__name__}`"


def at(value: Any, path: Iterable[str | int]) -> Any:
    """
    Returns the value at *path* in *value*.
    """
    for part in _keys(path, value):
        value = value[part]

    return value


def _keys(path: Iterable[str | int], value: Any) -> Path:
    """
    Returns *path* by the names that objects in *value* have: the validator gives those of digits (`7`, `+7`, `007`) as
    numbers.
    """
    keys: list[str | int] = []

    for part in path:
        key = part

        if isinstance(part, int) and isinstance(value, dict):
            key = (
                str(part)
                if str(part) in value
                else next(name for name in value if name.lstrip("+0") == str(part or ""))
            )

        keys.append(key)
        value = value[key]

    return tuple(keys)


def _or(kinds: Iterable[str]) -> str:
    return " or ".join(_TYPES.get(kind, kind) for kind in kinds)
