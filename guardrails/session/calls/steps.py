"""
The one way of a call through a session, and the two drivers that take its steps: at once, or awaited.

Promises: a call that was admitted is settled whatever ends it, a cancellation and Ctrl-C too; what a host lets pass is suspended; nothing is
open while a call waits to be made again.
"""

import inspect
import random
import time

from collections.abc import Callable, Generator
from functools import partial
from logging import INFO
from types import CoroutineType, NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared
from guardrails.core.text.collect import collect_async
from guardrails.core.values.logs import log
from guardrails.core.values.types import Success
from guardrails.session.ledger import Ledger

from .running import (
    CALLER,
    has_loop,
    in_time,
    is_async,
    is_cancelled,
    limit_of,
    not_awaited,
    threaded,
    with_timeout,
)


if TYPE_CHECKING:
    from guardrails.session.session import Session

    from .calls import Calls

Execute = Callable[[str, Any], Any]
T = TypeVar("T")
PLAIN: Final = frozenset({dict, list, tuple, str, bytes, int, float, bool, NoneType})
JITTER: Final = 0.2
"""Of a wait, at most so much longer by chance, or all that failed together would come back together."""
TURN_MS: Final = 5_000
"""The least wait before the second retry; doubles with each further one. A model would have thought meanwhile."""
MOST_ATTEMPTS: Final = 16
"""Attempts at one call, under any policy: then the model is to hear of it."""


class Store(NamedTuple):
    """
    A step that is taken with the session's store.
    """

    ledger: Ledger
    now: Callable[[], Any]

    async def later(self) -> Any:
        return await self.ledger.off_loop(self.now)


class Ask(NamedTuple):
    """
    The question to a person, *one* that is parked.
    """

    approver: Any
    one: Any

    def now(self) -> Any:
        answer = self.approver(self.one)
        if inspect.isawaitable(answer):
            raise not_awaited(answer, "approver")
        return answer

    async def later(self) -> Any:
        import asyncio

        asks = self.approver
        answer = asks(self.one) if is_async(asks) else await asyncio.to_thread(asks, self.one)
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

    def now(self) -> Any:
        return run_now(*self)

    async def later(self) -> Any:
        calls, decision, plan, execute, tool = self
        given, late, waits = decision.call.arguments, partial(calls.late, decision, plan), is_async(execute)
        own = plan.timeout_ms is None and decision.left_ms is not None and not waits
        limit = limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=own)
        if limit is None:
            result = execute(tool, given)
            if type(result) is CoroutineType or inspect.isawaitable(result):
                limit = limit_of(plan.tool, None, decision.left_ms, threaded=False)
                result = await (result if limit is None else in_time(result, limit, late))
            return await self._read(result)

        async def run() -> Any:
            result = execute(tool, given) if waits else await threaded(partial(drained, self), limit, late)
            return await self._read(await result if inspect.isawaitable(result) else result)

        return await in_time(run(), limit, late)

    async def _read(self, result: Any) -> Any:
        calls, decision, plan, _, _ = self
        items = result.value if isinstance(result, Success) else result
        if not hasattr(type(items), "__anext__"):
            return calls.drained(decision, plan, result)
        try:
            taken, whole = await collect_async(items, plan.max_bytes)
        except calls.passes:
            raise
        except Exception as problem:  # noqa: BLE001  a generator that raises half-way has failed
            return calls.told(decision, plan, problem)
        value = Success(taken, result.cost_usd, result.tokens) if isinstance(result, Success) else taken
        read = calls.told(decision, plan, value)
        read.complete = read.complete and whole
        return read


def drained(run: Run) -> Any:
    """
    Returns the result of *run* where it is made, or its outcome if it is an iterator.
    """
    calls, decision, plan, execute, tool = run
    return calls.drained(decision, plan, execute(tool, decision.call.arguments))


def run_now(calls: "Calls", decision: Decision, plan: Plan, execute: Execute, tool: str) -> Any:
    """
    Returns the result of a tool that runs at once, in this thread unless its time is limited.
    """
    limit = None
    if plan.timeout_ms is not None or decision.left_ms is not None:
        limit = limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=True)
    if limit is None:
        result = execute(tool, decision.call.arguments)
    else:
        run = partial(drained, Run(calls, decision, plan, execute, tool))
        result = with_timeout(run, limit, partial(calls.settle, decision, plan))
    if type(result) in PLAIN:
        return result
    return not_awaited(result) if inspect.isawaitable(result) else calls.drained(decision, plan, result)


class Sleep(NamedTuple):
    """
    The wait before a call is made again, by *sleep* if the session has one.
    """

    sleep: Callable[[float], object] | None
    seconds: float

    def now(self) -> None:
        (self.sleep or time.sleep)(self.seconds)

    async def later(self) -> None:
        import asyncio

        slept = (self.sleep or asyncio.sleep)(self.seconds)
        if inspect.isawaitable(slept):
            await slept


Step = Store | Ask | Run | Sleep
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
    decision: Decision
    envelope: Envelope | None
    while True:
        if away:
            decision = yield Store(ledger, partial(calls.decide, tool, arguments, call_id, execute))
        else:
            decision = calls.decide(tool, arguments, call_id, execute)
        if calls.on_decision is not None:
            calls.tell(decision)
        call, envelope = decision.call, decision.envelope
        if envelope is None:
            if log.isEnabledFor(INFO):
                log.info("executing tool", extra={"tool": tool, "session": ledger.id})
            plan, before = ledger.engine.chain.plans.get(call.tool) or ledger.plan(call.tool), CALLER.get()
            CALLER.set(session)
            try:
                if awaits:
                    result = yield Run(calls, decision, plan, execute, tool)
                else:
                    result = run_now(calls, decision, plan, execute, tool)
                now, came = calls.read(decision, plan, result)
            except BaseException as error:  # noqa: BLE001  most of what a tool raises the model reads as data
                now, came = yield from _raised(calls, decision, plan, error)
            finally:
                # A coroutine that nobody awaits any more is closed by whoever finds it, in a context of theirs.
                if CALLER.get() is session:
                    CALLER.set(before)
            if away:
                envelope = yield Store(ledger, partial(calls.close, decision, plan, now, came))
            else:
                envelope = calls.close(decision, plan, now, came)
        elif not asked and calls.approvals.approver is not None and (yield from calls.approvals.asks(decision)):
            call_id, asked = call.id, True
            continue
        elif failed is not None and envelope.previous_result is None:
            failed.repeat_refused(envelope)
            return failed
        if failed is not None:
            envelope.tries = attempt
        if envelope.status != "error":
            return envelope
        wait_ms = _again_ms(ledger, decision, envelope, attempt)
        if wait_ms is None or (not awaits and calls.sleep is None and has_loop()):
            # A wait would hold up the loop that runs.
            return envelope
        call_id, failed, attempt = call.id, envelope, attempt + 1
        yield Sleep(calls.sleep, wait_ms / 1000 * (1 + JITTER * random.random()) + 0.002)  # noqa: S311


def _raised(calls: "Calls", decision: Decision, plan: Plan, error: BaseException) -> Steps[tuple[int, Prepared]]:
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


def _again_ms(ledger: Ledger, decision: Decision, envelope: Envelope, attempt: int) -> int | None:
    """
    Returns after how many milliseconds a call that failed is made again. Returns None if it is not, or the model is to decide.
    """
    most = ledger.plan(decision.call.tool).auto_ms
    if most is None or not envelope.retryable or decision.call.sig is None or attempt >= MOST_ATTEMPTS:
        return None
    explored = envelope.judged is not None and envelope.judged.explored
    if explored or envelope.error_type == "cancelled":
        return None
    wait_ms = envelope.retry_after_ms or 0
    if attempt > 1:
        wait_ms = max(wait_ms, TURN_MS << (attempt - 2))
    late = decision.left_ms is not None and wait_ms * (1 + JITTER) >= decision.left_ms
    return None if late or wait_ms > most else wait_ms


def at_once(way: Steps[T]) -> T:
    """
    Returns the value of *way*, whose steps are taken at once.
    """
    send: Callable[[Any], Step] = way.send
    answer: Any = None
    try:
        while True:
            step = send(answer)
            try:
                answer = step.now()
                send = way.send
            except BaseException as error:  # noqa: BLE001  the way decides
                send, answer = way.throw, error
    except StopIteration as end:
        made: T = end.value
        return made


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
                answer = await step.later()
                send = way.send
            except BaseException as error:  # noqa: BLE001
                send, answer = way.throw, error
    except StopIteration as end:
        made: T = end.value
        return made
