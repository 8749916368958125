"""
Running a tool: in the caller's thread, or with a time limit in one of its own.
"""

import contextvars
import functools
import inspect
import sys
import threading
import time

from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError


if TYPE_CHECKING:
    import asyncio

    from guardrails.session.session import Session

Late = Callable[[object], object]
GRACE_S: Final = 0.05
"""For an asynchronous tool that is cancelled to end in, before it is answered all the same."""
IN_A_THREAD_MS: Final = 600_000
"""How little time a session has left where a synchronous tool without a timeout is held to it, which takes a thread."""
_until: "contextvars.ContextVar[float | None]" = contextvars.ContextVar("guardrails_until", default=None)
CALLER: "Final[contextvars.ContextVar[Any]]" = contextvars.ContextVar("guardrails_session", default=None)
"""The session of the call that this thread or task runs."""
_running: "set[asyncio.Future[Any]]" = set()
"""What goes on although it was answered: the loop itself does not hold it."""


class OutOfTime(TimeoutError):
    """
    The error that answers a tool which takes longer than it may.
    """


_STOPS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, OutOfTime)


class Limit(NamedTuple):
    """
    The time that a tool may take: *seconds*, and *why* no longer.
    """

    seconds: float
    why: str = ""

    def error(self) -> TimeoutError:
        """
        Returns the error that answers a tool which takes longer.
        """
        return OutOfTime(f"no result within {self.seconds:g} s{self.why}")


def limit_of(tool: Tool, timeout_ms: int | None, left_ms: int | None, *, threaded: bool) -> Limit | None:
    """
    Returns the smaller of the time limit of *tool* and the time that its session has left, in milliseconds. Returns
    None if it may take any time.

    Without a limit of its own a tool that would be *threaded* for it is held to the last ten minutes only.
    """
    if timeout_ms is None and left_ms is None:
        return None
    spared = timeout_ms is None and threaded and (tool.same_thread or (left_ms or 0) > IN_A_THREAD_MS)
    if left_ms is not None and not spared and (timeout_ms is None or left_ms < timeout_ms):
        # A millisecond more: times are rounded, and it is to be over then.
        return Limit((left_ms + 1) / 1000, ", when the session's time was up")
    return None if timeout_ms is None else Limit(timeout_ms / 1000)


def seconds_left() -> float | None:
    """
    Returns the seconds that the call which runs here may still take. Returns None if it may take any time. It serves
    tools that can end the work they started.
    """
    until = _until.get()
    return None if until is None else max(0.0, until - time.monotonic())


def is_async(function: Callable[..., Any]) -> bool:
    """
    Returns whether *function*, or the function that a callable object or a partial calls, is a coroutine or an
    asynchronous generator function.
    """
    while isinstance(function, functools.partial):
        function = function.func
    called = function if inspect.isroutine(function) else getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def stops(error: BaseException) -> bool:
    """
    Returns whether *error* ends the program or task, as Ctrl-C, a cancellation and a time limit do. It is no control
    flow of a host.
    """
    return isinstance(error, _STOPS) or is_cancelled(error)


def is_cancelled(error: BaseException) -> bool:
    """
    Returns whether *error* is the cancellation of a task.
    """
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def has_loop() -> bool:
    """
    Returns whether this thread runs an event loop, which a wait would block.
    """
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001


def current_session() -> "Session | None":
    """
    Returns the session whose call runs in this thread or task, for tools that ask it or make calls of their own.
    Returns None if none runs.
    """
    session: Session | None = CALLER.get()
    return session


def not_awaited(result: object, whose: str = "tool") -> Exception:
    """
    Returns the error that answers a synchronous call if its tool, or *whose* result it is, gave back something to await.
    """
    if inspect.iscoroutine(result):
        result.close()
    return SessionError(f"the {whose} is asynchronous: use `acall`, or wrap it as an async function")


def in_thread(run: Callable[[], Any], on_late: Late, seconds: float) -> "Future[Any]":
    """
    Start *run* in a daemon thread, with the caller's context variables; it may take *seconds*.

    Returns the future of its result. Once that is cancelled the outcome, value or exception, goes to *on_late* instead.
    """
    future: Future[Any] = Future()
    context = contextvars.copy_context()
    context.run(_until.set, time.monotonic() + seconds)

    def work() -> None:
        outcome: Any = None
        give: Callable[[Any], None] = future.set_exception
        try:
            outcome, give = context.run(run), future.set_result
        except StopIteration as error:
            # No future of asyncio takes one: it would never be done.
            outcome = RuntimeError(f"the tool raised StopIteration: {error}")
        except BaseException as error:  # noqa: BLE001  the thread's whole purpose is to carry it over
            outcome = error
        try:
            give(outcome)
        except InvalidStateError:
            if inspect.iscoroutine(outcome):
                # It never ran, and will not.
                outcome.close()
            else:
                # What is told of it belongs to where it began.
                context.run(on_late, outcome)

    threading.Thread(target=work, name="guardrails-tool", daemon=True).start()
    return future


def with_timeout(run: Callable[[], Any], limit: Limit, on_late: Late) -> Any:
    """
    Returns the result of *run*, or TimeoutError after its *limit*; the thread is then abandoned, its outcome goes to
    *on_late*.
    """
    future = in_thread(run, on_late, limit.seconds)
    try:
        return future.result(limit.seconds)
    except BaseException as error:
        # Ctrl-C while waiting too: the tool goes on, and its outcome must still be recorded.
        if future.cancel() and isinstance(error, TimeoutError):
            raise limit.error() from None
        if isinstance(error, TimeoutError):
            return future.result()
        raise


async def threaded(run: Callable[[], Any], limit: Limit, on_late: Late) -> Any:
    """
    Returns the result of *run*, as `with_timeout` starts it, for whoever awaits it and keeps its *limit*.
    """
    import asyncio

    future = in_thread(run, on_late, limit.seconds)
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        if future.cancel():
            raise
        # It was over just before: what it came to is late, and not lost.
        if inspect.iscoroutine(result := future.result()):
            result.close()
            raise
        return result


async def in_time(work: Awaitable[Any], limit: Limit, on_late: Late) -> Any:
    """
    Returns the result of *work*, or TimeoutError after *limit*: it is cancelled then, and answered also if it goes on
    all the same. Its outcome goes to *on_late* in that case.
    """
    import asyncio

    async def run() -> Any:
        _until.set(time.monotonic() + limit.seconds)
        return await work

    task = asyncio.ensure_future(run())

    def over(ended: "asyncio.Future[Any]") -> None:
        _running.discard(ended)
        if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()
        if not ended.cancelled():
            on_late(ended.exception() or ended.result())

    async def end(seconds: float | None) -> None:
        _running.add(task)
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            # Called by the loop, and so after whoever waits here was answered.
            task.add_done_callback(over)

    try:
        await asyncio.wait({task}, timeout=limit.seconds)
    except asyncio.CancelledError:
        await end(None)
        raise
    if task.done():
        return task.result()
    await end(GRACE_S)
    raise limit.error()
