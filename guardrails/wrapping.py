"""
Python functions behind a session.
"""

import functools
import inspect

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .arguments.function import FunctionArguments
from .envelope import Envelope
from .errors import CallDenied


if TYPE_CHECKING:
    from .session import Session


def wrapped(session: "Session", function: Callable[..., Any], returns: str, name: str) -> Callable[..., Any]:
    """
    *function* as a tool *name* of *session*: same parameters, same kind.
    """
    if returns not in ("json", "envelope", "value"):
        raise ValueError(f"`returns` is json, envelope or value, not `{returns}`")
    spec = FunctionArguments(function)
    session.define(name, spec)

    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def guarded_async(*args: Any, **kwargs: Any) -> Any:
            raised: list[Exception] = []

            async def execute(_: str, arguments: Any) -> Any:
                positional, keywords = spec.bind(arguments)
                try:
                    made = function(*positional, **keywords)
                    return await made if inspect.isawaitable(made) else made
                except Exception as error:
                    raised.append(error)
                    raise

            envelope = await session.acall(name, spec.named(args, kwargs), execute)
            return _given(envelope, returns, raised)

        return guarded_async

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        raised: list[Exception] = []

        def execute(_: str, arguments: Any) -> Any:
            positional, keywords = spec.bind(arguments)
            try:
                return function(*positional, **keywords)
            except Exception as error:
                raised.append(error)
                raise

        return _given(session.call(name, spec.named(args, kwargs), execute), returns, raised)

    return guarded


def _given(envelope: Envelope, returns: str, raised: list[Exception]) -> Any:
    if returns == "json":
        return envelope.to_json()
    if returns == "envelope":
        return envelope
    if envelope.ok:
        return envelope.value
    if raised:
        raise raised[0]
    raise CallDenied(envelope)
