"""
The one way of a call through a session, the time that its tool may take, and the two drivers of its steps: at once, or awaited.

Promises: a call that was admitted is settled whatever ends it, a cancellation and Ctrl-C too; what a host lets pass is suspended; nothing is
open while a call waits to be made again.
"""

import contextvars
import functools
import inspect
import random
import sys
import threading
import time

from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, InvalidStateError
from functools import partial
from logging import INFO
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared
from guardrails.core.text.collect import collect_async
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.core.values.types import Success

from .ledger import Ledger


if TYPE_CHECKING:
    import asyncio

    from .calls import Calls
    from .session import Session

Execute = Callable[[str, Any], Any]
Late = Callable[[object], object]
T = TypeVar("T")
PLAIN: Final = frozenset({dict, list, tuple, str, bytes, int, float, bool, NoneType})
GRACE_S: Final = 0.05
"""For an asynchronous tool that is cancelled to end in, before it is answered all the same."""
IN_A_THREAD_MS: Final = 600_000
"""How little time a session has left where a synchronous tool without a timeout is held to it, which takes a thread."""
JITTER: Final = 0.2
"""Of a wait, at most so much longer by chance, or all that failed together would come back together."""
TURN_MS: Final = 5_000
"""The least wait before the second retry; doubles with each further one. A model would have thought meanwhile."""
MOST_ATTEMPTS: Final = 16
"""Attempts at one call, under any policy: then the model is to hear of it."""
CALLER: "Final[contextvars.ContextVar[Session | None]]" = contextvars.ContextVar("guardrails_session", default=None)
"""The session of the call that this thread or task runs."""
_until: "contextvars.ContextVar[float | None]" = contextvars.ContextVar("guardrails_until", default=None)
_running: "set[asyncio.Future[Any]]" = set()
"""What goes on although it was answered: the loop itself does not hold it."""


class OutOfTime(TimeoutError):
    """
    The error that answers a tool which takes longer than it may.
    """


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


def current_session() -> "Session | None":
    """
    Returns the session whose call runs in this thread or task, for tools that ask it or make calls of their own.
    Returns None if none runs.
    """
    return CALLER.get()


def is_async(function: Callable[..., Any]) -> bool:
    """
    Returns whether *function*, or the function that a callable object or a partial calls, is a coroutine or an
    asynchronous generator function.
    """
    while isinstance(function, functools.partial):
        function = function.func
    called = function if inspect.isroutine(function) else getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def is_cancelled(error: BaseException) -> bool:
    """
    Returns whether *error* is the cancellation of a task.
    """
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def stops(error: BaseException) -> bool:
    """
    Returns whether *error* ends the program or task, as Ctrl-C, a cancellation and a time limit do. It is no control
    flow of a host.
    """
    return isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, OutOfTime)) or is_cancelled(error)


def has_loop() -> bool:
    """
    Returns whether this thread runs an event loop, which a wait would block.
    """
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001


def not_awaited(result: object, whose: str = "tool") -> Exception:
    """
    Returns the error that answers a synchronous call if its tool, or *whose* result it is, gave back something to await.
    """
    if inspect.iscoroutine(result):
        result.close()
    return SessionError(f"the {whose} is asynchronous: use `acall`, or wrap it as an async function")


# Time limits


def in_thread(run: Callable[[], Any], late: Late, seconds: float) -> "Future[Any]":
    """
    Start *run* in a daemon thread, with the caller's context variables; it may take *seconds*.

    Returns the future of its result. Once that is cancelled the outcome, value or exception, goes to *late* instead.
    """
    future: Future[Any] = Future()
    context = contextvars.copy_context()
    context.run(_until.set, time.monotonic() + seconds)

    def work() -> None:
        give: Callable[[Any], None] = future.set_exception
        outcome: Any = None
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
                context.run(late, outcome)

    threading.Thread(target=work, name="guardrails-tool", daemon=True).start()
    return future


def with_timeout(run: Callable[[], Any], limit: Limit, late: Late) -> Any:
    """
    Returns the result of *run*, or TimeoutError after its *limit*; the thread is then abandoned, its outcome goes to
    *late*.
    """
    future = in_thread(run, late, limit.seconds)
    try:
        return future.result(limit.seconds)
    except BaseException as error:
        # Ctrl-C while waiting too: the tool goes on, and its outcome must still be recorded.
        if not isinstance(error, TimeoutError):
            future.cancel()
            raise
        if future.cancel():
            raise limit.error() from None
        return future.result()


async def threaded(run: Callable[[], Any], limit: Limit, late: Late) -> Any:
    """
    Returns the result of *run*, as `with_timeout` starts it, for whoever awaits it and keeps its *limit*.
    """
    import asyncio

    future = in_thread(run, late, limit.seconds)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.cancel():
            raise
        # It was over just before: its result is late, and not lost.
        if inspect.iscoroutine(result := future.result()):
            result.close()
            raise
        return result


async def in_time(work: Coroutine[Any, Any, T], limit: Limit, late: Late) -> T:
    """
    Returns the result of *work*, or TimeoutError after *limit*: it is cancelled then, and answered also if it goes on
    all the same. Its outcome goes to *late* in that case.
    """
    import asyncio

    context = contextvars.copy_context()
    context.run(_until.set, time.monotonic() + limit.seconds)
    task = asyncio.get_running_loop().create_task(work, context=context)
    error: BaseException | None = None

    def over(ended: "asyncio.Future[Any]") -> None:
        _running.discard(ended)
        if not ended.cancelled():
            late(ended.exception() or ended.result())

    try:
        await asyncio.wait({task}, timeout=limit.seconds)
    except asyncio.CancelledError as cancelled:
        error = cancelled
    if error is None and task.done():
        return task.result()
    _running.add(task)
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE_S if error is None else None)
    finally:
        # Called by the loop, and so after whoever waits here was answered.
        task.add_done_callback(over)
    raise error or limit.error()


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

    of: Any
    value: Any

    def now(self) -> Any:
        answer = self.of(self.value)
        return not_awaited(answer, "function that is waited for") if inspect.isawaitable(answer) else answer

    async def later(self) -> Any:
        import asyncio

        answer = self.of(self.value) if is_async(self.of) else await asyncio.to_thread(self.of, self.value)
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
    """The name that the caller gave it."""

    def made(self) -> Any:
        """
        Returns the reading of what came of the tool, made where it ran; what is to be awaited, piece by piece or at once,
        as it is.
        """
        calls, decision, plan, execute, tool = self
        result = execute(tool, decision.call.arguments)
        awaits = inspect.isawaitable(result) or hasattr(type(_items(result)), "__anext__")
        return result if awaits else calls.read(decision, plan, result)

    def now(self) -> Prepared:
        calls, decision, plan, _, _ = self
        limit = limit_of(plan, decision.left_ms, threaded=True)
        made = (
            self.made()
            if limit is None
            else with_timeout(self.made, limit, partial(calls.settle, decision, plan, unread=True))
        )
        return calls.read(decision, plan, not_awaited(made) if inspect.isawaitable(made) else made)

    async def later(self) -> Prepared:
        calls, decision, plan, execute, tool = self
        waits, late = is_async(execute), partial(calls.late, decision, plan)
        limit = limit_of(plan, decision.left_ms, threaded=not waits)
        if limit is not None and not waits:
            return await in_time(self._read(threaded(self.made, limit, late)), limit, late)
        made = execute(tool, decision.call.arguments)
        if type(made) in PLAIN:
            return calls.read(decision, plan, made)
        limit = limit_of(plan, decision.left_ms)
        return await (self._read(made) if limit is None else in_time(self._read(made), limit, late))

    async def _read(self, made: Any) -> Prepared:
        calls, decision, plan, _, _ = self
        result = await made if inspect.isawaitable(made) else made
        items = _items(result)
        if not hasattr(type(items), "__anext__"):
            return calls.read(decision, plan, result)
        try:
            taken, whole = await collect_async(items, plan.max_bytes)
        except calls.passes:
            raise
        except Exception as problem:  # noqa: BLE001  a generator that raises half-way has failed
            return calls.read(decision, plan, problem)
        value = taken if result is items else Success(taken, result.cost_usd, result.tokens)
        read = calls.read(decision, plan, value)
        read.outcome.complete = read.outcome.complete and whole
        return read


def _items(result: object) -> Any:
    return result.value if isinstance(result, Success) else result


Step = Store | Wait | Run
Steps = Generator[Step, Any, T]


def steps(
    session: "Session", tool: str, arguments: Any, execute: Execute, call_id: str | None, *, awaits: bool
) -> Steps[Envelope]:
    """
    Decide, run, complete; and again if the policy makes a failed call again by itself.

    Where nobody *awaits* the steps a driver has nothing to do but for the wait of the last one, and for a person's.
    """
    calls, ledger = session.calls, session.ledger
    away = awaits and ledger.blocks
    asked, attempt = False, 1
    failed: Envelope | None = None
    while True:
        if away:
            decision, plan = yield Store(ledger, partial(calls.decide, tool, arguments, call_id, execute))
        else:
            decision, plan = calls.decide(tool, arguments, call_id, execute)
        if calls.on_decision is not None:
            calls.tell(decision)
        envelope: Envelope | None = decision.envelope
        if envelope is None:
            if log.isEnabledFor(INFO):
                log.info("executing tool", extra={"tool": tool, "session": ledger.id})
            before = CALLER.get()
            CALLER.set(session)
            try:
                if awaits:
                    came = yield Run(calls, decision, plan, execute, tool)
                elif plan.timeout_ms is None and decision.left_ms is None:
                    result = execute(tool, decision.call.arguments)
                    if type(result) not in PLAIN and inspect.isawaitable(result):
                        result = not_awaited(result)
                    came = calls.read(decision, plan, result)
                else:
                    came = Run(calls, decision, plan, execute, tool).now()
            except BaseException as error:  # noqa: BLE001  most of what a tool raises the model reads as data
                came = yield from _raised(calls, decision, plan, error)
            finally:
                # A coroutine that nobody awaits any more is closed by whoever finds it, in a context of theirs.
                if CALLER.get() is session:
                    CALLER.set(before)
            close = calls.close
            envelope = (
                (yield Store(ledger, partial(close, decision, plan, came))) if away else close(decision, plan, came)
            )
        elif not asked and calls.approver is not None and (yield from calls.asks(decision)):
            call_id, asked = decision.call.id, True
            continue
        elif failed is not None and envelope.previous_result is None:
            failed.repeat_refused(envelope)
            return failed
        if failed is not None:
            envelope.tries = attempt
        wait_s = (
            _wait_s(calls, decision, plan, envelope, attempt, awaits=awaits) if envelope.status == "error" else None
        )
        if wait_s is None:
            return envelope
        call_id, failed, attempt = decision.call.id, envelope, attempt + 1
        yield Wait(calls.sleep or (_asleep if awaits else time.sleep), wait_s)


def _raised(calls: "Calls", decision: Decision, plan: Plan, error: BaseException) -> Steps[Prepared]:
    """
    Read the *error* that a tool raised, or raise it on: if it is the control flow of a host, or ends the task or the program.
    """
    passed, close = partial(calls.passed, decision, error), partial(calls.settle, decision, plan, error)
    if isinstance(error, Exception):
        if not calls.passes or not (yield Store(calls.ledger, passed)):
            return calls.read(decision, plan, error)
    elif is_cancelled(error):
        yield Store(calls.ledger, close)
    elif not calls.passes or not passed():
        # The loop may be over: nobody waits for anything any more.
        close()
    raise error


def _wait_s(
    calls: "Calls", decision: Decision, plan: Plan, envelope: Envelope, attempt: int, *, awaits: bool
) -> float | None:
    """
    Returns after how many seconds a call that failed is made again. Returns None if it is not, or the model is to decide.
    """
    most, left_ms = plan.auto_ms, decision.left_ms
    if most is None or not envelope.retryable or decision.call.sig is None or attempt >= MOST_ATTEMPTS:
        return None
    explored = envelope.judged is not None and envelope.judged.explored
    if explored or envelope.error_type == "cancelled":
        return None
    if not awaits and calls.sleep is None and has_loop():
        # A wait would hold up the loop that runs.
        return None
    wait_ms = max(envelope.retry_after_ms or 0, TURN_MS << (attempt - 2) if attempt > 1 else 0)
    if wait_ms > most or (left_ms is not None and wait_ms * (1 + JITTER) >= left_ms):
        return None
    return wait_ms / 1000 * (1 + JITTER * random.random()) + 0.002  # noqa: S311


async def _asleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


async def awaited(way: Steps[T]) -> T:
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
            except BaseException as error:  # noqa: BLE001
                answer, send = error, way.throw
    except StopIteration as end:
        made: T = end.value
        return made
