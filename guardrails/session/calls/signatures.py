"""
The signature of a wrapped function. A framework that reads it calls the function rightly, and expects the right result.
"""

import functools
import inspect
import typing

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Generator, Iterator
from types import GenericAlias, SimpleNamespace
from typing import Any, Final

from guardrails.core.arguments.function import FunctionArguments, annotated
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import described


_SDKS: Final = ("mcp", "fastmcp")
_READ: Final = (AsyncGenerator, AsyncIterator, Generator, Iterator)
"""What is read whole; its value is a list."""


def signed(
    guarded: Callable[..., Any],
    function: Callable[..., Any],
    spec: FunctionArguments,
    name: str,
    *,
    returns: str,
    hidden: Collection[str],
) -> Callable[..., Any]:
    """
    Returns *guarded*, with the signature of *function* except its return type, and without the parameters *hidden*.

    One that an SDK of MCP fills, by its annotation with a `Context`, stays, or it would not come.
    """
    hints = _hints(function)
    result = {"json": str, "envelope": Envelope}.get(returns) or _value(function, hints)
    own = inspect.signature(function).parameters
    filled = [own[one].replace(kind=own[one].KEYWORD_ONLY) for one in hidden if _is_context(hints.get(one))]
    shown = spec.signature.parameters
    parameters = sorted(
        [*shown.values(), *(one.replace(annotation=hints[one.name]) for one in filled)], key=lambda one: one.kind
    )
    signature = inspect.Signature(parameters, return_annotation=result)
    named = {one.name: one.annotation for one in parameters}
    guarded.__signature__ = signature  # type: ignore[attr-defined]
    guarded.__annotations__ = named if result is signature.empty else named | {"return": result}
    if guarded.__name__ != name:
        guarded.__name__ = guarded.__qualname__ = name
    guarded.__doc__ = inspect.getdoc(described(function))
    return guarded


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """
    The annotations of *function*, each resolved if it can be: some name what is only there for type checkers.
    """
    target = annotated(function)
    found: dict[str, Any] = {}
    for name, annotation in getattr(target, "__annotations__", {}).items():
        holder = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= typing.get_type_hints(holder, getattr(target, "__globals__", {}), include_extras=True)
        except Exception:  # noqa: BLE001  resolving annotations runs their code
            found[name] = annotation
    return found


def _value(function: Callable[..., Any], hints: dict[str, Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isclass(function):
        return function
    result = inspect.signature(function).return_annotation
    if isinstance(result, str):
        result = hints.get("return", result)
    if (typing.get_origin(result) or result) in _READ:
        return GenericAlias(list, typing.get_args(result)[:1] or (Any,))
    return result


def _is_context(annotation: Any) -> bool:
    kinds = (annotation, *typing.get_args(annotation))
    return any(
        inspect.isclass(one) and one.__name__ == "Context" and one.__module__.split(".")[0] in _SDKS for one in kinds
    )
