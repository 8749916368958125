"""
Running a tool: in the caller's thread, or with a time limit in one of its own.
"""

import contextvars
import functools
import inspect
import threading

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from guardrails.core.engine.plan import Plan
from guardrails.core.engine.prepare import told, told_async
from guardrails.core.values.types import Success, ToolCall


Late = Callable[[object], object]


class Reading(NamedTuple):
    """
    How a result that is an iterator becomes an outcome: reading it is a part of running its tool.
    """

    plan: Plan
    arguments: Any
    now: Callable[[], int]
    """Milliseconds since 1970."""

    def drained(self, result: object) -> object:
        """
        *result*, or its outcome where it is an iterator.
        """
        if not _has(result, "__next__"):
            return result
        return told(result, self.plan, self.arguments, self.now())

    async def gathered(self, result: object) -> object:
        """
        *result*, or its outcome where it is an asynchronous iterator.
        """
        if not _has(result, "__anext__"):
            return result
        return await told_async(result, self.plan, self.arguments, self.now())


def is_async(function: Callable[..., Any]) -> bool:
    """
    Whether *function*, or what a callable object or a partial calls, is a coroutine or an asynchronous generator function.
    """
    while isinstance(function, functools.partial):
        function = function.func
    called = function if inspect.isroutine(function) else getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def _has(result: object, method: str) -> bool:
    return hasattr(type(result.value if isinstance(result, Success) else result), method)


def in_thread(run: Callable[[], Any], on_late: Late) -> "tuple[Future[Any], Callable[[], bool]]":
    """
    Start *run* in a daemon thread, with the caller's context variables.

    Returns the future of its result and `abandon`: once that returned True the outcome, value or exception, goes to
    *on_late* instead.
    """
    future: Future[Any] = Future()
    lock = threading.Lock()
    state = {"abandoned": False, "done": False}
    context = contextvars.copy_context()

    def work() -> None:
        outcome: Any
        failed = False
        try:
            outcome = context.run(run)
        except StopIteration as error:
            # No future of asyncio takes one: it would never be done.
            outcome, failed = RuntimeError(f"the tool raised StopIteration: {error}"), True
        except BaseException as error:  # noqa: BLE001  the thread's whole purpose is to carry it over
            outcome, failed = error, True
        with lock:
            state["done"] = True
            abandoned = state["abandoned"]
        if abandoned:
            on_late(outcome)
        elif failed:
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def abandon() -> bool:
        with lock:
            state["abandoned"] = not state["done"]
            return state["abandoned"]

    threading.Thread(target=work, name="guardrails-tool", daemon=True).start()
    return future, abandon


def with_timeout(run: Callable[[], Any], seconds: float, on_late: Late) -> Any:
    """
    The result of *run*, or TimeoutError after *seconds*; the thread is then abandoned, its outcome goes to *on_late*.
    """
    future, abandon = in_thread(run, on_late)
    try:
        return future.result(seconds)
    except TimeoutError:
        if not future.done() and abandon():
            raise TimeoutError(f"no result within {seconds:g} s") from None
        return future.result()
    except BaseException:
        # Ctrl-C while waiting: the tool goes on, its outcome must still be recorded.
        if not future.done():
            abandon()
        raise


async def within(
    seconds: float, execute: Callable[[str, Any], Any], call: ToolCall, on_late: Late, reading: Reading
) -> Any:
    """
    The awaited and read result of `execute(tool, arguments)`, or TimeoutError after *seconds*.

    A coroutine is cancelled then; a synchronous function runs in a thread, which is abandoned.
    """
    import asyncio

    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            if is_async(execute):
                made = execute(call.tool, call.arguments)
                return await reading.gathered(await made if inspect.isawaitable(made) else made)
            future, abandon = in_thread(lambda: reading.drained(execute(call.tool, call.arguments)), on_late)
            try:
                result = await asyncio.shield(asyncio.wrap_future(future))
            except asyncio.CancelledError:
                abandon()
                raise
            return await reading.gathered(await result if inspect.isawaitable(result) else result)
    except TimeoutError:
        # The tool may have had a timeout of its own.
        if not limit.expired():
            raise
        raise TimeoutError(f"no result within {seconds:g} s") from None
