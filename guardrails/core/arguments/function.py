"""
Arguments defined by a Python function: its signature, its annotations and its docstring.
"""

import functools
import inspect
import typing

from collections.abc import Callable, Collection, Iterable, Mapping
from types import GenericAlias, SimpleNamespace, UnionType
from typing import Annotated, Any

from guardrails.core.values.errors import PolicyError

from .docstring import parameter_descriptions
from .problems import clean
from .typed import TypedArguments, json_schema


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


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

    __slots__ = ("_keywords_only", "signature")

    def __init__(self, function: Callable[..., Any], hidden: Collection[str] = ()) -> None:
        name = getattr(function, "__name__", type(function).__name__)

        try:
            parameters = _parameters(function, hidden)
            adapter = _adapter(name, parameters)
        except Exception as error:  # noqa: BLE001  # resolving annotations runs their code
            reason, _, _ = str(error).partition(". ")
            hint = "; a parameter that the host passes goes into `hidden`"
            raise PolicyError([f"the arguments of `{name}` cannot be read: {clean(reason)}{hint}"]) from None

        schema = json_schema(name, adapter.json_schema)
        described = parameter_descriptions((function if inspect.isclass(function) else annotated(function)).__doc__)
        names = {_alias(parameter): parameter.name for parameter in parameters if parameter.kind is not _VARIADIC[1]}

        for alias, parameter in names.items():
            if parameter in described:
                schema["properties"][alias].setdefault("description", described[parameter])

        super().__init__(schema, names, adapter.validator.validate_python, core_schema=adapter.core_schema)
        self.signature = inspect.Signature(parameters)
        self._keywords_only = all(p.kind not in (*_VARIADIC, p.POSITIONAL_ONLY) for p in parameters)

    def bind(self, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """
        Returns coerced *arguments* as the positional and the keyword arguments to call the function with.
        """
        if self._keywords_only:
            return (), dict(arguments)

        rest = dict(arguments)
        bound = inspect.BoundArguments(self.signature, {})

        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[parameter.name] = rest
            elif parameter.name in rest:
                value = rest.pop(parameter.name)
                bound.arguments[parameter.name] = tuple(value) if parameter.kind is parameter.VAR_POSITIONAL else value

        bound.apply_defaults()

        return bound.args, bound.kwargs

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """
        Returns the arguments of a call of the function from Python, by name, to be checked.

        Raises TypeError, as the call would, for too many positional arguments and for one given twice.
        """
        if not args:
            return dict(kwargs)

        given = self.signature.bind_partial(*args).arguments

        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"multiple values for argument `{min(twice)}`")

        return {name: list(v) if self._is_variadic(name) else v for name, v in given.items()} | dict(kwargs)

    def _is_variadic(self, name: str) -> bool:
        return self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL


def _parameters(function: Callable[..., Any], hidden: Collection[str]) -> list[inspect.Parameter]:
    """
    Returns the visible parameters, annotations resolved.
    """
    target, parameters = annotated(function), inspect.signature(function).parameters
    # The hidden and the result may name what is only there for type checkers.
    annotations = getattr(target, "__annotations__", {}).items()
    wanted = parameters.keys() - {*hidden, "return"}
    holder = SimpleNamespace(__annotations__={name: a for name, a in annotations if name in wanted})
    hints = typing.get_type_hints(holder, getattr(target, "__globals__", {}), include_extras=True)
    bound = function.keywords if isinstance(function, functools.partial) else {}
    found = []

    for at, parameter in enumerate(parameters.values()):
        receiver = at == 0 and parameter.name in {"self", "cls"} and parameter.name not in hints

        if not receiver and parameter.name not in hidden and parameter.name not in bound:
            found.append(parameter.replace(annotation=hints.get(parameter.name, Any)))

    return found


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


def _adapter(name: str, parameters: list[inspect.Parameter]) -> Any:
    """
    Returns a pydantic adapter of a dict with the parameters as keys: unlike a model's fields, these may have any name.
    """
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    typed_dict: Any = TypedDict
    fields = {p.name: _field(p) for p in parameters if p.kind is not p.VAR_KEYWORD}
    extra = next((p.annotation for p in parameters if p.kind is p.VAR_KEYWORD), None)

    if extra is None:
        shape = typed_dict(name, fields)
        shape.__pydantic_config__ = ConfigDict(extra="forbid")
    else:
        shape = typed_dict(name, fields, extra_items=extra)

    return TypeAdapter(shape)


def _field(parameter: inspect.Parameter) -> Any:
    from pydantic import Field
    from pydantic.fields import FieldInfo
    from pydantic_core import to_jsonable_python

    annotation, default = _eager(parameter.annotation), parameter.default

    if parameter.kind is parameter.VAR_POSITIONAL:
        return Annotated[GenericAlias(list, annotation), Field(default=[])]

    if default is parameter.empty:
        return annotation

    if isinstance(default, FieldInfo):
        return Annotated[annotation, default]

    if default is None and annotation is not Any:
        annotation = _replaced(annotation, lambda kind: typing.Optional[kind])  # noqa: UP045  # `|` needs a type

    try:
        to_jsonable_python(default)
    except (ValueError, TypeError):
        return typing.NotRequired[annotation]

    return Annotated[annotation, Field(default=default)]


def _eager(annotation: Any) -> Any:
    """
    Returns *annotation* with a list for an `Iterable`, whose items pydantic would check only while the tool runs.
    """
    kind = typing.get_origin(annotation)

    if Iterable in (kind, annotation):
        return GenericAlias(list, typing.get_args(annotation) or (Any,))

    if kind in (typing.Union, UnionType):
        return typing.Union[tuple(map(_eager, typing.get_args(annotation)))]  # noqa: UP007  # built at run time

    return _replaced(annotation, _eager) if kind is Annotated else annotation


def _replaced(annotation: Any, change: Callable[[Any], Any]) -> Any:
    """
    Returns *annotation* with its type changed and its metadata kept.
    """
    if typing.get_origin(annotation) is not Annotated:
        return change(annotation)

    inner, *marks = typing.get_args(annotation)

    return functools.reduce(lambda kind, mark: Annotated[kind, mark], marks, change(inner))


def _alias(parameter: inspect.Parameter) -> str:
    from pydantic.fields import FieldInfo

    marks = (*getattr(parameter.annotation, "__metadata__", ()), parameter.default)
    aliases = [mark.validation_alias or mark.alias for mark in marks if isinstance(mark, FieldInfo)]

    return next((alias for alias in aliases if isinstance(alias, str)), parameter.name)
