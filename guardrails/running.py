"""
Running a tool: in the caller's thread, or with a time limit in one of its own.
"""

import contextvars
import inspect
import threading

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from .types import ToolCall


Late = Callable[[object], None]


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


async def within(seconds: float, execute: Callable[[str, Any], Any], call: ToolCall, on_late: Late) -> Any:
    """
    The awaited result of `execute(tool, arguments)`, or TimeoutError after *seconds*.

    A coroutine is cancelled then; a synchronous function runs in a thread, which is abandoned.
    """
    import asyncio

    target = execute if inspect.iscoroutinefunction(execute) else getattr(execute, "__call__", None)  # noqa: B004
    try:
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(target):
                return await execute(call.tool, call.arguments)
            future, abandon = in_thread(partial(execute, call.tool, call.arguments), on_late)
            try:
                result = await asyncio.shield(asyncio.wrap_future(future))
            except asyncio.CancelledError:
                abandon()
                raise
            return await result if inspect.isawaitable(result) else result
    except TimeoutError as error:
        raise (error if str(error) else TimeoutError(f"no result within {seconds:g} s")) from None
