"""
Check arguments with pydantic: values are coerced, defaults filled in, booleans refused as numbers.
"""

import copy
import functools
import operator

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem

from .fail_fast import fail_fast
from .flags import counted_flags, item, key_of
from .plain_model import dict_validator
from .problems import NOT_A_FLAG, as_object, capped, clean, dotted, unknown
from .schema import for_model, is_scalar, names_at, never_number
from .typed_errors import problems_of
from .visits import LARGE, Visits, is_large


if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


_FLAGS_IN: Final = frozenset({bool, dict, list})
"""Types of values that are or may contain booleans."""
_MAX_VISITS: Final = 300_000
"""Of schemas to values that pydantic is let make: a fifth of a second."""
_EACH: Final = 5
"""More of them for each pair of a schema and a value, so that many honest values are not too many."""


class TypedArguments:
    """
    The schema and the check that pydantic models and function signatures share.

    pydantic's lax mode reads `"10"` as 10, which is wanted, and `true` as 1, which is not. If a boolean became a
    number, it is a problem of kind `type`. A `bool` field, or a union with `bool`, takes it as it is.
    """

    __slots__ = (
        "_core_schema",
        "_data",
        "_error",
        "_fail_fast",
        "_names",
        "_roomy",
        "_schema",
        "_suspects",
        "_validate",
        "_visits",
    )

    def __init__(
        self,
        schema: dict[str, Any],
        names: Mapping[str, str],
        validate: Callable[..., Any],
        data: Callable[[Any], dict[str, Any]] = dict,
        *,
        core_schema: Any = None,
    ) -> None:
        """
        *names* maps the name in *schema* (the alias) to the name in the coerced arguments. *data*: makes the coerced
        arguments of a value of *validate* that is no dict. *core_schema*: pydantic's, of what *validate* checks.
        """
        from pydantic import ValidationError

        self._error: type[ValidationError] = ValidationError
        self._schema = for_model(schema)
        self._names = {alias: name for alias, name in names.items() if alias != name}
        # By name too, so that coerced arguments pass the check again.
        self._validate = functools.partial(validate, by_name=True) if self._names else validate
        self._data = data
        self._suspects: tuple[str, ...] | None = None
        visits = Visits(self._schema, tagged=True)
        self._visits = visits if visits.recursive else None
        self._core_schema = core_schema
        self._fail_fast: Callable[..., Any] | None = None
        self._roomy = not all(map(is_scalar, self._schema["properties"].values()))

        if never_number(self._schema.get("additionalProperties", False)):
            self._suspects = tuple(
                key
                for alias, name in names.items()
                for key in dict.fromkeys((alias, name))
                if not never_number(self._schema["properties"].get(alias))
            )

    def schema(self) -> dict[str, Any]:
        """
        Returns the JSON Schema of the arguments in the form providers take (see `schema.for_model`), a fresh copy.
        """
        return copy.deepcopy(self._schema)

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        """
        Returns the coerced arguments, a new dict by name with defaults filled in, or *arguments* and their problems;
        never raises.
        """
        given: Any = arguments

        try:
            if type(arguments) is not dict:
                given, problems = self._object(arguments)

                if problems:
                    return arguments, problems

            if (self._roomy or len(given) > LARGE) and (self._visits or len(given) > LARGE or is_large(given.values())):
                if problems := self._unbounded(given):
                    return given, problems

                result = self._briefly(given)
            else:
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

    def _unbounded(self, given: dict[str, Any]) -> tuple[Problem, ...]:
        """
        Returns why pydantic is not asked about *given*: it would take time, and build errors, out of all proportion.
        """
        if self._visits is not None:
            counted = self._visits.of(given)

            if counted and counted[0] > _MAX_VISITS + _EACH * counted[1]:
                return (Problem("", "is nested too deep in alternatives that contain each other", "value"),)

        if len(given) > LARGE and self._schema.get("additionalProperties") is False:
            known = self._schema["properties"].keys() | self._names.values()

            return capped(unknown((name,), names_at(self._schema, ())) for name in given if name not in known)

        return ()

    def _briefly(self, given: dict[str, Any]) -> Any:
        """
        Returns the arguments that *given* are. If they are many, each array and object in them has one error at most:
        pydantic builds all errors before it gives one.
        """
        if self._core_schema is None or not is_large((given,)):
            return self._validate(given)

        if self._fail_fast is None:
            validate = fail_fast(self._core_schema) or self._validate
            self._fail_fast = functools.partial(validate, by_name=True) if self._names else validate

        return self._fail_fast(given)

    def _flags(self, given: dict[str, Any], result: Any) -> tuple[Problem, ...]:
        paths = (
            path
            for key, value in given.items()
            for path in counted_flags(value, item(given, result, self._names.get(key, key)), (key,))
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

    Raises PolicyError if *definition* has no JSON Schema, or is a `RootModel`.
    """

    __slots__ = ("_model",)

    def __init__(self, definition: "type[BaseModel]") -> None:
        if getattr(definition, "__pydantic_root_model__", False):
            raise PolicyError([f"`{definition.__name__}` is a `RootModel`; arguments need names"])

        schema = json_schema(definition.__name__, definition.model_json_schema)
        names = {key_of(field, name): name for name, field in definition.model_fields.items()}
        nested = "$defs" in schema
        validate = None if nested else dict_validator(definition)
        build = definition.__pydantic_validator__.validate_python
        data = _plain_fields if nested else _fields_of(definition)
        super().__init__(schema, names, validate or build, data, core_schema=definition.__pydantic_core_schema__)
        self._model = definition

    def _object(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        return as_object(_fields(arguments) if isinstance(arguments, self._model) else arguments)


def json_schema(name: str, make: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """
    Returns the schema that pydantic's *make* gives, without the titles it derives from names: the model pays for each
    token.

    Raises PolicyError if a type has no schema.
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


def _fields_of(definition: "type[BaseModel]") -> Callable[[Any], dict[str, Any]]:
    """
    Returns how to get at the fields of a *definition*: `__dict__`, unless some are elsewhere, or other things there.
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
    Returns *value* with models and dataclasses inside as dicts.
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
