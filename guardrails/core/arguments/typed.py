"""
Arguments by pydantic: of a model, or of a function's signature, annotations and docstring. Values are coerced, defaults
filled in, booleans refused as numbers.

Mistakes are told by the schema that the model sees, and where that sees none as pydantic or a validator words them: no links, no values.
"""

import copy
import functools
import inspect
import json
import operator
import re
import typing

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from types import GenericAlias, SimpleNamespace, UnionType
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem

from .json_schema import SchemaArguments, for_model
from .problems import Checked, Path, capped, clean, dotted, mended


_MAX_ERRORS: Final = 10_000
"""Errors of one call beyond which none is looked at: pydantic gives all or none, at 1 us each."""
_ENTRY: Final = re.compile(
    r"(?::(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?)?\\?\*{0,2}(\w+)(?:\s*\(.*?\))?(?::\s*(.*)|\s+:.*)?"
)
"""A line that begins the description of a parameter, in Google's style, in numpy's (with no text of its own) and in reST."""


class TypedArguments:
    """
    The schema and the check that pydantic models and function signatures share.

    pydantic's lax mode reads `"10"` as 10, which is wanted, and `true` as 1, which is not. If a boolean became a
    number, it is a problem of kind `type`. A `bool` field, or a union with `bool`, takes it as it is.
    """

    def __init__(self, name: str, adapter: Any, described: Mapping[str, str]) -> None:
        """
        *adapter* is pydantic's, of a model or a dict. Raises PolicyError if a type has no schema.
        """
        self._schema = _schema(name, adapter)
        for parameter, each in self._schema["properties"].items():
            each.update({"description": described[parameter], **each} if parameter in described else {})
        # By name too, so that coerced arguments pass the check again.
        self._validate = functools.partial(adapter.validator.validate_python, by_name=True)
        nested = "$defs" in self._schema or self._schema.get("additionalProperties")
        dump = functools.partial(adapter.serializer.to_python, warnings=False)
        self._data: Callable[[Any], Any] = dump if nested else operator.attrgetter("__dict__")

    def schema(self) -> dict[str, Any]:
        """
        Returns the JSON Schema of the arguments in the form providers take (see `for_model`), a fresh copy.
        """
        return copy.deepcopy(self._schema)

    def check(self, arguments: object) -> Checked:
        """
        Returns the coerced arguments, a new dict by name with defaults filled in, or *arguments* and their problems;
        never raises.
        """
        given: Any = arguments
        try:
            result = self._validate(given)
            result = result if type(result) is dict else self._data(result)
            for key, value in given.items():
                if type(value) is bool and isinstance(made := result.get(key), int | float) and type(made) is not bool:
                    return given, (Problem(dotted((key,)), "must be a number, not a boolean", "type"),)
            return result, ()
        except Exception as error:  # a validator of the tool's author may raise anything
            message = f"the arguments cannot be checked (`{type(error).__name__}`)"
            problems: tuple[Problem, ...] = (Problem("", message, "value"),)
            with suppress(Exception):  # the texts of the author's exceptions are code too
                if isinstance(error, ValidationError):
                    problems = problems_of(error, given, self._schema)
            return mended(self.check, given, problems)


class ModelArguments(TypedArguments):
    """
    Arguments defined by a pydantic model. The coerced arguments are plain data: field name to value, nested models and
    dataclasses as dicts; Python values (dates, enums, decimals) stay. The model's own `extra` decides on unknown names.

    Raises PolicyError if *definition* has no JSON Schema, or is a `RootModel`.
    """

    def __init__(self, definition: type[BaseModel]) -> None:
        if getattr(definition, "__pydantic_root_model__", False):
            raise PolicyError([f"`{definition.__name__}` is a `RootModel`; arguments need names"])
        super().__init__(definition.__name__, TypeAdapter(definition), {})


class FunctionArguments(TypedArguments):
    """
    Arguments defined by the signature of *function* (or any callable). The coerced arguments map every parameter to the
    value that its annotation asks for. Defaults are filled in, so `{}` and `{"n": 10}` with `n=10` are one call.

    * Three kinds of names are no arguments: `self` and `cls` of an unbound method, keywords that a `functools.partial`
      has set, and the names in *hidden*. The host passes these itself. The schema leaves all three out, and the check
      refuses them as unknown.
    * `*tags: str` is an array `tags`; `**more: int` lets any further name in. `bind` turns both back into a call.
    * A parameter without an annotation takes anything. `= None` lets null in. A default that is no JSON-like value (a
      sentinel) is left to the function.
    * A description in the annotation, `Annotated[..., Field(description=...)]`, goes before the docstring's.

    Raises PolicyError if an annotation cannot be resolved or has no JSON Schema.
    """

    def __init__(self, function: Callable[..., Any], hidden: Collection[str] = ()) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        try:
            self.signature = inspect.Signature(_parameters(function, hidden))
            adapter = _adapter(name, self.signature.parameters.values())
        except Exception as error:  # resolving annotations runs their code
            reason = f"{clean(str(error).partition('. ')[0])}; a parameter that the host passes is bound by `functools.partial`"
            raise PolicyError([f"the arguments of `{name}` cannot be read: {reason}"]) from None
        described = descriptions((function if inspect.isclass(function) else annotated(function)).__doc__)
        super().__init__(name, adapter, described)

    def bind(self, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """
        Returns coerced *arguments* as the positional and the keyword arguments to call the function with.
        """
        rest = dict(arguments)
        bound = inspect.BoundArguments(self.signature, {})
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[name] = rest
            elif name in rest:
                bound.arguments[name] = rest.pop(name)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """
        Returns the arguments of a call of the function from Python, by name, to be checked.

        Raises TypeError, as the call would, for too many positional arguments and for one given twice.
        """
        given = self.signature.bind_partial(*args).arguments if args else {}
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"multiple values for argument `{min(twice)}`")
        return {**given, **kwargs}


class _Untitled(GenerateJsonSchema):
    """
    Schemas without the titles that pydantic derives from names: the model pays for each token.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as declared there

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(name: str, adapter: Any) -> dict[str, Any]:
    try:
        schema = adapter.json_schema(schema_generator=_Untitled)
    except Exception as error:  # types bring code of their own for this
        raise PolicyError([f"the arguments of `{name}` have no JSON Schema: {clean(str(error))}"]) from None
    for title, node in ((name, schema), *schema.get("$defs", {}).items()):
        if node.get("title") == title:
            del node["title"]
    return for_model(schema)


def problems_of(error: ValidationError, given: dict[str, Any], schema: Mapping[str, Any]) -> tuple[Problem, ...]:
    """
    Returns the problems that *error* reports of the arguments *given*, whose JSON Schema is *schema*: what that finds wrong with the
    arguments that pydantic refuses, and what validators of the author say. Where both are silent, pydantic speaks.
    """
    if error.error_count() > _MAX_ERRORS:
        return (Problem("", f"{error.error_count()} values do not fit the schema", "type"),)
    errors: list[Any] = error.errors(include_url=False)
    wrong = {dotted(each["loc"][:1]) for each in errors}
    problems: list[Problem] = []
    with suppress(Exception):  # given from Python, they may be no JSON
        faults = _by_schema(json.dumps(schema)).faults(given)
        problems += (one for one in faults if one.field.partition(".")[0] in wrong)
    problems += (_problem(each, given) for each in errors if "error" in each.get("ctx", ()))
    return capped(problems or (_problem(each, given) for each in errors))


@functools.lru_cache(maxsize=64)
def _by_schema(text: str) -> SchemaArguments:
    return SchemaArguments(json.loads(text))


def _problem(error: Any, given: Any) -> Problem:
    path: Path = ()
    for key in error["loc"]:
        # Of a union pydantic tells the alternative too that it tried.
        with suppress(LookupError, TypeError):
            given, path = given[key], (*path, key)
    if (cause := error.get("ctx", {}).get("error")) is not None:
        # What the author's own validator raised.
        return Problem(dotted(path), str(cause) or f"is refused (`{type(cause).__name__}`)", "value")
    message = re.sub(r"^[A-Z][\w ]*? should ", "must ", error["msg"]).partition(", unable to parse")[0]
    return Problem(dotted(path), message[:1].lower() + message[1:], "value")


def _parameters(function: Callable[..., Any], hidden: Collection[str]) -> list[inspect.Parameter]:
    """
    Returns the visible parameters, annotations resolved.
    """
    target, parameters = annotated(function), inspect.signature(function).parameters
    passed = {*hidden, *(function.keywords if isinstance(function, functools.partial) else ())}
    # Those and the result may name what is only there for type checkers.
    wanted = parameters.keys() - passed - {"return"}
    named = {name: each for name, each in getattr(target, "__annotations__", {}).items() if name in wanted}
    holder = SimpleNamespace(__annotations__=named)
    hints = typing.get_type_hints(holder, getattr(target, "__globals__", {}), include_extras=True)
    passed |= {"self", "cls"}.intersection([*parameters][:1]) - hints.keys()
    return [each.replace(annotation=hints.get(name, Any)) for name, each in parameters.items() if name not in passed]


def annotated(function: Callable[..., Any]) -> Any:
    """
    Returns the function that carries annotations and docstring.
    """
    if isinstance(function, functools.partial):
        return annotated(function.func)
    if inspect.isclass(function):
        return function.__init__
    if not inspect.isroutine(function):
        return inspect.unwrap(type(function).__call__)
    inner = inspect.unwrap(function)
    return inner if inner is function else annotated(inner)


def _adapter(name: str, parameters: Iterable[inspect.Parameter]) -> Any:
    """
    Returns a pydantic adapter of a dict with the parameters as keys: unlike a model's fields, these may have any name.
    """
    typed_dict: Any = TypedDict
    more = [each.annotation for each in parameters if each.kind is each.VAR_KEYWORD]
    fields = {each.name: _field(each) for each in parameters if each.kind is not each.VAR_KEYWORD}
    others = {"extra_items": more[0]} if more else {"closed": True}
    return TypeAdapter(typed_dict(name, fields, **others))


def _field(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    annotation = _eager(parameter.annotation, null=default is None and parameter.annotation is not Any)
    if parameter.kind is parameter.VAR_POSITIONAL:
        return Annotated[GenericAlias(list, annotation), Field(default=[])]
    if default is parameter.empty:
        return annotation
    if isinstance(default, FieldInfo):
        return Annotated[annotation, default]
    try:
        to_jsonable_python(default)
    except (ValueError, TypeError):
        return typing.NotRequired[annotation]
    return Annotated[annotation, Field(default=default)]


def _eager(annotation: Any, *, null: bool = False) -> Any:
    """
    Returns *annotation* with a list for an `Iterable`, whose items pydantic would check only while the tool runs, and with *null* let in.
    """
    origin, (kind, *more) = typing.get_origin(annotation), typing.get_args(annotation) or (Any,)
    if origin is Annotated:
        marked: Any = Annotated
        return marked[(_eager(kind, null=null), *more)]
    if origin in (typing.Union, UnionType):
        annotation = typing.Union[tuple(map(_eager, (kind, *more)))]  # noqa: UP007  # built at run time
    elif Iterable in (origin, annotation):
        annotation = GenericAlias(list, kind)
    return typing.Optional[annotation] if null else annotation  # noqa: UP045  # `|` needs a type


def descriptions(docstring: str | None) -> dict[str, str]:
    """
    Returns each parameter name with its description, one line each: Google, numpy and reST style, the first in the text
    wins. Some names may be those of no parameter: of sections, of exceptions.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    depths = [len(line) - len(line.lstrip()) if line else 1_000 for line in lines]
    texts: dict[str, str] = {}
    for at, line in enumerate(lines):
        if match := _ENTRY.fullmatch(line.strip()):
            end = next((n for n in range(at + 1, len(lines)) if depths[n] <= depths[at]), len(lines))
            if text := " ".join(" ".join([match[2] or "", *lines[at + 1 : end]]).split()):
                texts.setdefault(match[1], text)
    return texts
