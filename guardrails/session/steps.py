"""
The one way of a call through a session, the time that its tool may take, and the driver that awaits its steps.

Promises: a call that was admitted is settled whatever ends it, a cancellation and Ctrl-C too; what a host lets pass is suspended; nothing is
open while a call waits to be made again.
"""

import contextvars
import inspect
import sys
import threading
import time

from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.envelope import Envelope
from guardrails.core.result import Reading
from guardrails.core.text.plain_json import collect_async
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log, wants_info
from guardrails.core.values.types import Success

from .ledger import Ledger


if TYPE_CHECKING:
    import asyncio

    from concurrent.futures import Future

    from .calls import Calls
    from .session import Session

Execute = Callable[[str, Any], Any]
Late = Callable[[object], object]
T = TypeVar("T")
PLAIN: Final = frozenset({dict, list, tuple, str, bytes, int, float, bool, type(None)})
IN_A_THREAD_MS: Final = 600_000
"""How little time a session has left where a synchronous tool without a timeout is held to it, which takes a thread."""
GRACE_S: Final = 0.05
"""How long work that its time limit cancelled may take to end before the call is answered."""
JITTER: Final = 0.2
"""Of a wait, at most so much longer by chance, or all that failed together would come back together."""
TURN_MS: Final = 5_000
"""The least wait before the second retry; doubles with each further one. A model would have thought meanwhile."""
CALLER: "Final[contextvars.ContextVar[Session | None]]" = contextvars.ContextVar("guardrails_session", default=None)
"""The session of the call that this thread or task runs."""
_until: "contextvars.ContextVar[float | None]" = contextvars.ContextVar("guardrails_until", default=None)
_running: "set[asyncio.Task[Any]]" = set()
"""Work that goes on after its call was answered: a loop holds its tasks by weak references."""


# Time limits


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
        return TimeoutError(f"no result within {self.seconds:g} s{self.why}")


def limit_of(plan: Plan, left_ms: int | None, *, threaded: bool = False) -> Limit | None:
    """
    Returns the smaller of the time limit of the tool of *plan* and the time that its session has left, in milliseconds.
    Returns None if it may take any time.

    Without a limit of its own a tool that would be *threaded* for it is held to the last ten minutes only.
    """
    own_ms = plan.timeout_ms
    if left_ms is not None and (own_ms is None or left_ms < own_ms):
        spared = own_ms is None and threaded and (plan.tool.same_thread or left_ms > IN_A_THREAD_MS)
        # A millisecond more: times are rounded, and it is to be over then.
        return None if spared else Limit((left_ms + 1) / 1000, ", when the session's time was up")
    return None if own_ms is None else Limit(own_ms / 1000)


def seconds_left() -> float | None:
    """
    Returns the seconds that the call which runs here may still take. Returns None if it may take any time. It serves
    tools that can end the work they started.
    """
    until = _until.get()
    return None if until is None else max(0.0, until - time.monotonic())


def in_thread(work: Callable[[], Any], late: Late | None = None, seconds: float | None = None) -> "Future[Any]":
    """
    Start *work* in a daemon thread, with the caller's context variables; it may take *seconds*, else as long as its caller.

    Returns the future of its result. Once that is cancelled the outcome, value or exception, goes to *late* instead.
    """
    from concurrent.futures import Future, InvalidStateError

    future: Future[Any] = Future()

    def body() -> None:
        _until.set(_until.get() if seconds is None else time.monotonic() + seconds)
        give: Callable[[Any], None]
        try:
            outcome, give = work(), future.set_result
        except BaseException as error:  # the thread's whole purpose is to carry it over
            outcome, give = error, future.set_exception
        try:
            give(outcome)
        except InvalidStateError:
            if late is not None:
                late(outcome)

    threading.Thread(target=contextvars.copy_context().run, args=(body,), name="guardrails-tool", daemon=True).start()
    return future


def thread_result(work: Callable[[], Any], limit: Limit, late: Late) -> Any:
    """
    Returns the result of *work*, or the error of its *limit*: its thread is then abandoned, and its outcome goes to
    *late*.
    """
    future = in_thread(work, late, limit.seconds)
    try:
        return future.result(limit.seconds)
    except BaseException as error:
        # Ctrl-C while waiting too: the tool goes on, and its outcome must still be recorded.
        if not future.cancel():
            return future.result()
        if isinstance(error, TimeoutError):
            return limit.error()
        raise


async def task_result(work: Coroutine[Any, Any, T], limit: Limit, late: Late) -> T | TimeoutError:
    """
    Returns the result of *work*, or the error of its *limit*, by which it is cancelled. If it goes on all the same, its
    outcome goes to *late*.
    """
    import asyncio

    context = contextvars.copy_context()
    context.run(_until.set, time.monotonic() + limit.seconds)
    task = asyncio.get_running_loop().create_task(work, context=context)
    cancelled: BaseException | None = None

    def end(_: object) -> None:
        _running.discard(task)
        if not task.cancelled():
            late(task.exception() or task.result())

    try:
        await asyncio.wait({task}, timeout=limit.seconds)
    except asyncio.CancelledError as error:
        cancelled = error
    if cancelled is None and task.done():
        return task.result()
    _running.add(task)
    task.cancel()
    try:
        # A task that was cancelled itself waits for its work to end.
        await asyncio.wait({task}, timeout=GRACE_S if cancelled is None else None)
    finally:
        # Called by the loop, and so after whoever waits here was answered.
        task.add_done_callback(end)
    if cancelled is not None:
        raise cancelled
    return limit.error()


# Tools


def current_session() -> "Session | None":
    """
    Returns the session whose call runs in this thread or task, for tools that ask it or make calls of their own.
    Returns None if none runs.
    """
    return CALLER.get()


def is_async(function: Callable[..., Any]) -> bool:
    """
    Returns whether *function*, or the function that a callable object calls, is a coroutine or an asynchronous
    generator function.
    """
    body = function if isinstance(function, partial) or inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body)


def is_cancellation(error: BaseException) -> bool:
    """
    Returns whether *error* is the cancellation of a task.
    """
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def outcome_of(
    calls: "Calls", decision: Decision, plan: Plan, execute: Execute, tool: str, *, awaits: bool = False
) -> Any:
    """
    Returns the reading of what came of the tool, which the caller names *tool*, made where it ran. Where somebody
    *awaits* it, a result that is to be awaited is given as it is.
    """
    result: Any
    try:
        result = execute(tool, decision.call.arguments)
    except calls.passes:
        raise
    except Exception as error:  # what a tool raises the model reads as data
        return calls.read(decision, plan, error)
    if type(result) not in PLAIN and _is_awaited(result):
        if awaits:
            return result
        result = asynchronous(result)
    return calls.read(decision, plan, result)


def _is_awaited(result: object) -> bool:
    with suppress(Exception):  # an object that cannot be looked at is still a result
        return inspect.isawaitable(result) or hasattr(type(_items(result)), "__anext__")
    return False


def asynchronous(result: object) -> Exception:
    """
    Returns the error that answers a synchronous call if what it waits for gave back something to await.
    """
    if inspect.iscoroutine(result):
        result.close()
    return SessionError("the tool is asynchronous: use `acall`, or wrap it as an async function")


def _items(result: object) -> Any:
    return result.value if isinstance(result, Success) else result


# Steps


class Store(NamedTuple):
    """
    A step that is taken with the session's store.
    """

    ledger: Ledger
    now: Callable[[], Any]

    async def later(self) -> Any:
        return await self.ledger.off_loop(self.now)


class Wait(NamedTuple):
    """
    The wait for *of*(value): for a person's answer about a parked call, or to make a call again some seconds later.
    """

    of: Callable[[Any], Any]
    value: Any

    def now(self) -> Any:
        answer = self.of(self.value)
        if inspect.isawaitable(answer):
            raise asynchronous(answer)
        return answer

    async def later(self) -> Any:
        import asyncio

        of = asyncio.sleep if self.of is time.sleep else self.of
        answer = of(self.value) if is_async(of) else await asyncio.to_thread(of, self.value)
        return await answer if inspect.isawaitable(answer) else answer


class Run(NamedTuple):
    """
    The run of a tool, for as long as it may take. Reading a result that is an iterator is a part of it.
    """

    calls: "Calls"
    decision: Decision
    plan: Plan
    execute: Execute
    tool: str

    def now(self) -> Reading:
        calls, decision, plan, _, _ = self
        limit, work = limit_of(plan, decision.left_ms, threaded=True), partial(outcome_of, *self)
        return calls.read(decision, plan, work() if limit is None else thread_result(work, limit, self.late))

    async def later(self) -> Reading:
        calls, decision, plan, execute, _ = self
        work, limit = partial(outcome_of, *self, awaits=True), limit_of(plan, decision.left_ms)
        # What is not asynchronous is held to a limit in a thread.
        blocks = limit is not None and not is_async(execute)
        threaded = limit_of(plan, decision.left_ms, threaded=True) if blocks else None
        if threaded is None:
            result = work()
        else:
            import asyncio

            result, limit = asyncio.wrap_future(in_thread(work, self.late, threaded.seconds)), threaded
        if type(result) is not Reading:
            reading = self._reading(result)
            result = await (reading if limit is None else task_result(reading, limit, self.late))
        return calls.read(decision, plan, result)

    def late(self, result: object) -> None:
        """
        Settle the call, which was answered already, without holding up an event loop.
        """
        self.calls.ledger.aside(partial(self.calls.settle, self.decision, self.plan, result, unread=True))

    async def _reading(self, result: Any) -> Reading:
        calls, decision, plan, _, _ = self
        whole = True
        try:
            while type(result) not in PLAIN and inspect.isawaitable(result):
                result = await result
            items = _items(result)
            if hasattr(type(items), "__anext__"):
                items, whole = await collect_async(items, plan.max_bytes)
                result = replace(result, value=items) if isinstance(result, Success) else items
        except calls.passes:
            raise
        except Exception as error:  # a generator that raises half-way has failed
            result = error
        reading = calls.read(decision, plan, result)
        reading.complete = reading.complete and whole
        return reading


Step = Store | Wait | Run
Steps = Generator[Step, Any, T]


def steps(
    session: "Session", tool: str, arguments: Any, execute: Execute, call_id: str | None, *, awaits: bool
) -> Steps[Envelope]:
    """
    Decide, run, complete; again if an approver has answered, or if the policy makes a failed call again by itself.

    A step is yielded only where there is something to wait for, as for a tool that somebody *awaits*.
    """
    calls, ledger = session.calls, session.ledger
    if not callable(execute):
        raise TypeError(f"`execute` is a function of (tool, arguments), not `{type(execute).__name__}`")
    away, asked, attempt = awaits and ledger.blocks, False, 1
    failure: Envelope | None = None
    while True:
        ask = partial(calls.decide, tool, arguments, call_id, claims=True)
        decision, plan = (yield Store(ledger, ask)) if away else ask()
        calls.tell("on_decision", decision)
        envelope = decision.envelope
        if envelope is not None:
            if not asked and calls.approver is not None and (yield from calls.ask(decision)):
                call_id, asked = decision.call.id, True
                continue
            if failure is None or envelope.previous_result is not None:
                return envelope
            failure.repeat_refused(envelope)
            return failure
        if wants_info():
            log.info("executing tool", extra={"tool": tool, "session": ledger.id})
        run, before = (calls, decision, plan, execute, tool), CALLER.get()
        CALLER.set(session)
        try:
            if awaits:
                outcome = yield Run(*run)
            elif plan.timeout_ms is None and decision.left_ms is None:
                outcome = outcome_of(*run)
            else:
                outcome = Run(*run).now()
        except BaseException as error:
            end = calls.end_by(decision, plan, error)
            if away and (isinstance(error, Exception) or is_cancellation(error)):
                yield Store(ledger, end)
            else:
                # The loop may be over: nobody waits for anything any more.
                end()
            raise
        finally:
            # A coroutine that nobody awaits any more is closed by whoever finds it, in a context of theirs.
            if CALLER.get() is session:
                CALLER.set(before)
        close = partial(calls.close, decision, plan, outcome)
        envelope = (yield Store(ledger, close)) if away else close()
        if attempt > 1:
            envelope.tries = attempt
        wait_s = None if plan.auto_ms is None else _wait_s(envelope, plan.auto_ms, attempt)
        if wait_s is None or (not awaits and calls.sleep is None and holds_up_a_loop()):
            return envelope
        call_id, failure, attempt = decision.call.id, envelope, attempt + 1
        yield Wait(calls.sleep or time.sleep, wait_s)


def _wait_s(envelope: Envelope, most_ms: int, attempt: int) -> float | None:
    """
    Returns after how many seconds a call that failed is made again. Returns None if it is not, or the model is to decide.
    """
    if not envelope.retryable:
        return None
    wait_ms = max(envelope.retry_after_ms or 0, TURN_MS << (attempt - 2) if attempt > 1 else 0)
    from random import random  # half a millisecond of a start

    return None if wait_ms > most_ms else wait_ms / 1000 * (1 + JITTER * random()) + 0.002  # noqa: S311


def holds_up_a_loop() -> bool:
    """
    Returns whether all tasks of an event loop would wait for whoever waits here.
    """
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001


async def drive(way: Steps[T]) -> T:
    """
    Returns the value of *way*, whose steps are awaited.
    """
    send: Callable[[Any], Step] = way.send
    answer: Any = None
    try:
        while True:
            step = send(answer)
            try:
                answer, send = await step.later(), way.send
            except BaseException as error:  # the way decides
                answer, send = error, way.throw
    except StopIteration as end:
        value: T = end.value
        return value
