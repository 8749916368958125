"""
Python functions behind a session.
"""

import functools
import inspect

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any, Final, get_args, get_origin

from guardrails.core.arguments.typed import FunctionArguments, annotated
from guardrails.core.envelope import CallDenied, CallFailed, Envelope
from guardrails.core.tool import name_of, without_partials

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
    guarded.__name__ = guarded.__qualname__ = name
    guarded.__doc__ = inspect.getdoc(without_partials(function))
    return guarded


def _value(function: Callable[..., Any]) -> Any:
    """
    Returns the annotation of what *function* returns, resolved if it can be: some name what is only there for type
    checkers.
    """
    if inspect.isclass(function):
        return function
    try:
        result = inspect.signature(annotated(function), eval_str=True).return_annotation
    except Exception:  # resolving annotations runs their code
        result = inspect.signature(annotated(function)).return_annotation
    items = get_args(result)[:1] or (Any,)
    return list[items] if get_origin(result) in _READ else result  # type: ignore[valid-type]


def wrapped(session: Session, function: Callable[..., Any], returns: str, name: str | None) -> Callable[..., Any]:
    """
    Returns *function* as a tool *name* of *session*: same parameters, same kind.
    """
    if returns not in ("json", "envelope", "value"):
        raise ValueError(f"`returns` is json, envelope or value, not `{returns}`")
    spec, inner = FunctionArguments(function), annotated(function)
    name = name_of(function) if name is None else name
    # A function made anew by the same lines, such as a method of another object, is the same.
    ruled = session.calls.declare_function(name, getattr(inner, "__code__", inner), spec)
    scope = session if ruled else scoped(session, {name: spec})

    def run(_: str, arguments: Any) -> Any:
        # The policy's check came first; the function's own still has to turn text into what it annotates.
        own: Any = spec.check(arguments)[0] if ruled else arguments
        positional, keywords = spec.bind(own)
        return function(*positional, **keywords)

    async def run_async(_: str, arguments: Any) -> Any:
        made = run(name, arguments)
        return await made if inspect.isawaitable(made) else made

    @functools.wraps(function)
    async def guarded_async(*args: Any, **kwargs: Any) -> Any:
        return _given(await scope.acall(name, spec.named(args, kwargs), run_async), returns)

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        return _given(scope.call(name, spec.named(args, kwargs), run), returns)

    return signed(guarded_async if is_async(function) else guarded, function, spec, name, returns)


def _given(envelope: Envelope, returns: str) -> Any:
    if returns != "value":
        return envelope if returns == "envelope" else envelope.to_json()
    if envelope.ok:
        return envelope.value
    raise envelope.raised or (CallFailed if envelope.status == "error" else CallDenied)(envelope)
