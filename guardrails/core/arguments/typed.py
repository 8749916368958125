"""
Check arguments with pydantic: values are coerced, defaults filled in, booleans refused as numbers.
"""

import copy
import functools
import operator

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem

from .plain_model import dict_validator
from .problems import NOT_A_FLAG, Path, as_object, capped, clean, dotted
from .schema import for_model
from .typed_errors import problems_of


if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


_FLAGS_IN: Final = frozenset({bool, dict, list})
"""Types of values that are or may contain booleans."""


class TypedArguments:
    """
    What pydantic models and function signatures share: the schema and the check.

    pydantic's lax mode reads `"10"` as 10, which is wanted, and `true` as 1, which is not: wherever a boolean became a
    number, it is a problem of kind `type` (a `bool` field, or a union with one, takes it as it is).
    """

    __slots__ = ("_data", "_error", "_names", "_schema", "_suspects", "_validate")

    def __init__(
        self,
        schema: dict[str, Any],
        names: Mapping[str, str],
        validate: Callable[..., Any],
        data: Callable[[Any], dict[str, Any]] = dict,
    ) -> None:
        """
        *names*: from the name in *schema* (the alias) to the name in the coerced arguments. *data*: from what *validate*
        gives, where that is no dict, to the coerced arguments.
        """
        from pydantic import ValidationError

        self._error: type[ValidationError] = ValidationError
        self._schema = for_model(schema)
        self._names = {alias: name for alias, name in names.items() if alias != name}
        # By name too, so that coerced arguments pass the check again.
        self._validate = functools.partial(validate, by_name=True) if self._names else validate
        self._data = data
        self._suspects: tuple[str, ...] | None = None

        if _never_number(self._schema.get("additionalProperties", False)):
            self._suspects = tuple(
                key
                for alias, name in names.items()
                for key in dict.fromkeys((alias, name))
                if not _never_number(self._schema["properties"].get(alias))
            )

    def schema(self) -> dict[str, Any]:
        """
        The JSON Schema of the arguments in the form providers take (see `schema.for_model`), a fresh copy.
        """
        return copy.deepcopy(self._schema)

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        """
        The coerced arguments, a new dict by name with defaults filled in, or *arguments* and what is wrong; never raises.
        """
        given: Any = arguments

        try:
            if type(arguments) is not dict:
                given, problems = self._object(arguments)

                if problems:
                    return arguments, problems

            result = self._validate(given)

            for key in given if self._suspects is None else self._suspects:
                if type(given.get(key)) in _FLAGS_IN:
                    if flags := self._flags(given, result):
                        return given, flags

                    break

            return result if type(result) is dict else self._data(result), ()
        except self._error as error:
            return given, self._problems(error, given)
        except Exception as error:  # noqa: BLE001  # a validator of the tool's author may raise anything
            return given, (_unchecked(error),)

    def _object(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        return as_object(arguments)

    def _flags(self, given: dict[str, Any], result: Any) -> tuple[Problem, ...]:
        paths = (
            path
            for key, value in given.items()
            for path in _counted_flags(value, _item(given, result, self._names.get(key, key)), (key,))
        )

        return capped(Problem(dotted(path), NOT_A_FLAG, "type") for path in paths)

    def _problems(self, error: "ValidationError", given: dict[str, Any]) -> tuple[Problem, ...]:
        try:
            return problems_of(error, given, self._schema)
        except Exception as other:  # noqa: BLE001  # the texts of the author's exceptions are code too
            return (_unchecked(other),)


class ModelArguments(TypedArguments):
    """
    Arguments defined by a pydantic model. The coerced arguments are plain data: field name to value, nested models and
    dataclasses as dicts; Python values (dates, enums, decimals) stay. The model's own `extra` decides on unknown names.

    Raises PolicyError where *definition* has no JSON Schema, or is a `RootModel`.
    """

    __slots__ = ("_model",)

    def __init__(self, definition: "type[BaseModel]") -> None:
        if getattr(definition, "__pydantic_root_model__", False):
            raise PolicyError([f"`{definition.__name__}` is a `RootModel`; arguments need names"])

        schema = json_schema(definition.__name__, definition.model_json_schema)
        names = {_key(field, name): name for name, field in definition.model_fields.items()}
        nested = "$defs" in schema
        validate = None if nested else dict_validator(definition)
        build = definition.__pydantic_validator__.validate_python
        super().__init__(schema, names, validate or build, _plain_fields if nested else _fields_of(definition))
        self._model = definition

    def _object(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        return as_object(_fields(arguments) if isinstance(arguments, self._model) else arguments)


def json_schema(name: str, make: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """
    The schema that pydantic's *make* gives, without the titles it derives from names: the model pays for each token.

    Raises PolicyError where a type has no schema.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as declared there

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    try:
        schema = make(schema_generator=Untitled)
    except Exception as error:  # noqa: BLE001  # types bring code of their own for this
        raise PolicyError([f"the arguments of `{name}` have no JSON Schema: {clean(str(error))}"]) from None

    for title, node in ((name, schema), *schema.get("$defs", {}).items()):
        if node.get("title") == title:
            del node["title"]

    return schema


def _key(field: Any, name: str) -> str:
    """
    The name of *field* in the JSON Schema: its alias, the first where it has several.
    """
    alias = field.validation_alias or field.alias or name
    choices = [alias, *getattr(alias, "choices", ())]

    return next((choice for choice in choices if isinstance(choice, str)), name)


def _never_number(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return schema is False

    return schema.get("type") == "boolean" or (schema.get("type") == "string" and "format" not in schema)


def _counted_flags(given: Any, got: Any, path: Path) -> Iterator[Path]:
    """
    The paths at which a boolean of *given* is a number in *got*.
    """
    if given is got:
        return

    if given is True or given is False:
        if type(got) is not bool and isinstance(got, (int, float, complex, timedelta)):
            yield path
    elif type(given) is dict:
        for key, each in given.items():
            yield from _counted_flags(each, _item(given, got, key), (*path, key))
    elif type(given) is list and isinstance(got, (set, frozenset)):
        if not any(type(each) is bool for each in got):
            yield from ((*path, at) for at, each in enumerate(given) if each is True or each is False)
    elif type(given) is list and isinstance(got, (list, tuple, deque)):
        for at, pair in enumerate(zip(given, got, strict=False)):
            yield from _counted_flags(*pair, (*path, at))


def _item(given: dict[Any, Any], got: Any, key: Any) -> Any:
    """
    What became of `given[key]`: an item or, in a model or dataclass, an attribute, by name or alias.
    """
    if isinstance(got, dict):
        if key in got or any(type(name) is str for name in got):
            return got.get(key)

        # The keys of a `dict[int, ...]` are coerced too; the order stays.
        return dict(zip(given, got.values(), strict=False)).get(key)

    for name, field in getattr(type(got), "model_fields", {}).items():
        if key in (name, _key(field, name)):
            return getattr(got, name, None)

    return getattr(got, key, None) if isinstance(key, str) else None


def _fields_of(definition: "type[BaseModel]") -> Callable[[Any], dict[str, Any]]:
    """
    How to get at the fields of a *definition*: `__dict__`, unless some are elsewhere, or other things there.
    """
    members = {type(value) for kind in definition.__mro__ for value in vars(kind).values()}
    only = definition.model_config.get("extra") != "allow" and functools.cached_property not in members

    return operator.attrgetter("__dict__") if only else _fields


def _fields(model: Any) -> dict[str, Any]:
    declared = {name: model.__dict__[name] for name in type(model).model_fields if name in model.__dict__}

    return declared | (model.__pydantic_extra__ or {})


def _plain_fields(model: Any) -> dict[str, Any]:
    fields = _fields(model)

    # A value that contains itself, in a field that takes anything, stays as it is.
    with suppress(RecursionError):
        return {name: _plain(value) for name, value in fields.items()}

    return fields


def _plain(value: Any) -> Any:
    """
    *value* with models and dataclasses inside as dicts.
    """
    kind = type(value)

    if kind in (str, int, float, bool, type(None)):
        return value

    if kind is dict:
        return {key: _plain(each) for key, each in value.items()}

    if kind in (list, tuple):
        return kind(_plain(each) for each in value)

    if hasattr(kind, "model_fields"):
        return _plain(value.root) if getattr(kind, "__pydantic_root_model__", False) else _plain(_fields(value))

    if hasattr(kind, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in kind.__dataclass_fields__}

    return value


def _unchecked(error: Exception) -> Problem:
    return Problem("", f"the arguments cannot be checked (`{type(error).__name__}`)", "value")
