"""
Python functions behind a session.
"""

import functools
import inspect
import typing

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from types import GenericAlias, SimpleNamespace
from typing import Any, Final

from guardrails.core.arguments.typed import FunctionArguments, annotated
from guardrails.core.envelope.envelope import CallDenied, CallFailed, Envelope
from guardrails.core.tools.tool import described, name_of

from .session import Session, scoped
from .steps import is_async


_READ: Final = (AsyncGenerator, AsyncIterator, Generator, Iterator)
"""What is read whole; its value is a list."""


def signed(
    guarded: Callable[..., Any], function: Callable[..., Any], spec: FunctionArguments, name: str, returns: str
) -> Callable[..., Any]:
    """
    Returns *guarded*, with the signature of *function* except its return type.
    """
    result = {"json": str, "envelope": Envelope}.get(returns) or _value(function)
    signature = spec.signature.replace(return_annotation=result)
    guarded.__signature__ = signature  # type: ignore[attr-defined]
    guarded.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    if result is not signature.empty:
        guarded.__annotations__["return"] = result
    if guarded.__name__ != name:
        guarded.__name__ = guarded.__qualname__ = name
    guarded.__doc__ = inspect.getdoc(described(function))
    return guarded


def _value(function: Callable[..., Any]) -> Any:
    """
    Returns the annotation of what *function* returns, resolved if it can be: some name what is only there for type
    checkers.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isclass(function):
        return function
    result = inspect.signature(function).return_annotation
    if isinstance(result, str):
        holder = SimpleNamespace(__annotations__={"return": result})
        # Resolving annotations runs their code.
        with suppress(Exception):
            names = getattr(annotated(function), "__globals__", {})
            result = typing.get_type_hints(holder, names, include_extras=True)["return"]
    if (typing.get_origin(result) or result) in _READ:
        return GenericAlias(list, typing.get_args(result)[:1] or (Any,))
    return result


def wrapped(session: Session, function: Callable[..., Any], returns: str, name: str | None) -> Callable[..., Any]:
    """
    Returns *function* as a tool *name* of *session*: same parameters, same kind.
    """
    if returns not in ("json", "envelope", "value"):
        raise ValueError(f"`returns` is json, envelope or value, not `{returns}`")
    spec = FunctionArguments(function)
    name = name_of(function) if name is None else name
    own = annotated(function)
    # A function made anew by the same lines, such as a method of another object, is the same.
    ruled = session.calls.tools.wrap(name, getattr(own, "__code__", own), spec)
    scope = session if ruled else scoped(session, {name: spec})

    if is_async(function):

        @functools.wraps(function)
        async def guarded_async(*args: Any, **kwargs: Any) -> Any:
            run = _Run(function, spec, ruled)
            return run.given(await scope.acall(name, spec.named(args, kwargs), run.awaited), returns)

        return signed(guarded_async, function, spec, name, returns)

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        run = _Run(function, spec, ruled)
        return run.given(scope.call(name, spec.named(args, kwargs), run.plain), returns)

    return signed(guarded, function, spec, name, returns)


class _Run:
    """
    One call of a function, and what became of it that its envelope does not say.
    """

    __slots__ = ("_function", "_ruled", "_spec", "error", "started")

    def __init__(self, function: Callable[..., Any], spec: FunctionArguments, ruled: bool) -> None:
        self._function = function
        self._spec = spec
        self._ruled = ruled
        """The policy's check came first; the function's own still has to turn text into what it annotates."""
        self.started = False
        self.error: Exception | None = None

    def plain(self, _: str, arguments: Any) -> Any:
        # What an attempt before came to is not what this one does.
        self.started, self.error = True, None
        try:
            return self._call(arguments)
        except Exception as error:
            self.error = error
            raise

    async def awaited(self, _: str, arguments: Any) -> Any:
        self.started, self.error = True, None
        try:
            made = self._call(arguments)
            return await made if inspect.isawaitable(made) else made
        except Exception as error:
            self.error = error
            raise

    def _call(self, arguments: Any) -> Any:
        if self._ruled:
            arguments = self._spec.check(arguments)[0]
        positional, keywords = self._spec.bind(arguments)
        return self._function(*positional, **keywords)

    def given(self, envelope: Envelope, returns: str) -> Any:
        if returns == "json":
            return envelope.to_json()
        if returns == "envelope":
            return envelope
        if envelope.ok:
            return envelope.value
        if self.error is not None:
            raise self.error
        if not self.started:
            raise CallDenied(envelope)
        raise TimeoutError(envelope.error_message) if envelope.error_type == "timeout" else CallFailed(envelope)
