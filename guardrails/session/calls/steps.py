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
from typing import Any, Final, NamedTuple

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.logs import log

from .running import (
    CALLER,
    Reading,
    has_loop,
    in_time,
    is_async,
    is_cancelled,
    leave,
    limit_of,
    not_awaited,
    with_timeout,
    within,
)


Execute = Callable[[str, Any], Any]
PLAIN: Final = frozenset({dict, list, tuple, str, bytes, int, float, bool, NoneType})
JITTER: Final = 0.2
"""Of a wait, at most so much longer by chance, or all that failed together would come back together."""
TURN_MS: Final = 5_000
"""The least wait before the second retry; doubles with each further one. A model would have thought meanwhile."""
MOST_ATTEMPTS: Final = 16
"""Attempts at one call, under any policy: then the model is to hear of it."""


class Store(NamedTuple):
    """
    Something that is done with the session's store. *undo* takes its result back if nobody gets it.
    """

    session: Any
    work: Callable[[], Any]
    undo: Callable[[Any], object] | None = None

    def now(self) -> Any:
        return self.work()

    async def later(self) -> Any:
        session = self.session
        return await session._away(self.work, self.undo) if session._blocks else self.work()  # noqa: SLF001


class Ask(NamedTuple):
    """
    A person is asked about a refused call, if it waits.
    """

    session: Any
    decision: Decision

    def now(self) -> bool:
        return bool(self.session._asks(self.decision))  # noqa: SLF001

    async def later(self) -> bool:
        return bool(await self.session._aasks(self.decision))  # noqa: SLF001


class Run(NamedTuple):
    """
    The tool runs, for as long as it may.
    """

    session: Any
    decision: Decision
    plan: Plan
    execute: Execute
    tool: str
    """By the name that the caller gave it."""

    def now(self) -> Any:
        session, decision, plan, execute, tool = self
        call = decision.call
        limit = None
        if plan.timeout_ms is not None or decision.left_ms is not None:
            limit = limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=True)
        if limit is None:
            result = execute(tool, call.arguments)
        else:
            reading = session._reading(decision, plan)  # noqa: SLF001
            run = partial(_drained, reading, execute, tool, call.arguments)
            result = with_timeout(run, limit, partial(session._settle, decision, plan))  # noqa: SLF001
        if type(result) not in PLAIN:
            if inspect.isawaitable(result):
                result = not_awaited(result)
            elif session._passes:  # noqa: SLF001
                result = session._reading(decision, plan).drained(result)  # noqa: SLF001
        return result

    async def later(self) -> Any:
        session, decision, plan, execute, tool = self
        limit, call = None, decision.call
        late = partial(session._late, decision, plan)  # noqa: SLF001
        if plan.timeout_ms is not None or decision.left_ms is not None:
            threaded = plan.timeout_ms is None and not is_async(execute)
            limit = limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=threaded)
        if limit is not None:
            return await within(limit, execute, call, late, session._reading(decision, plan))  # noqa: SLF001
        result = execute(tool, call.arguments)
        if type(result) is CoroutineType or inspect.isawaitable(result):
            held = limit_of(plan.tool, None, decision.left_ms, threaded=False)
            result = await (result if held is None else in_time(result, held, late))
        if type(result) not in PLAIN:
            result = await session._reading(decision, plan).gathered(result)  # noqa: SLF001
        return result


def _drained(reading: Reading, execute: Execute, tool: str, arguments: Any) -> Any:
    return reading.drained(execute(tool, arguments))


class Sleep(NamedTuple):
    """
    Time passes before a call is made again.
    """

    session: Any
    seconds: float

    def now(self) -> None:
        (self.session._sleep or time.sleep)(self.seconds)  # noqa: SLF001

    async def later(self) -> None:
        import asyncio

        slept = (self.session._sleep or asyncio.sleep)(self.seconds)  # noqa: SLF001
        if inspect.isawaitable(slept):
            await slept


Step = Store | Ask | Run | Sleep
Steps = Generator[Step, Any, Envelope]


def steps(session: Any, tool: str, arguments: Any, execute: Execute, call_id: str | None, *, blocks: bool) -> Steps:
    """
    Decide, run, complete; and again where the policy makes a failed call again by itself. *blocks*: a wait would block a loop that runs.
    """
    decision, envelope = yield from _once(session, tool, arguments, execute, call_id)
    attempt = 1
    if blocks and session._sleep is None and has_loop():  # noqa: SLF001
        return envelope
    while envelope.status == "error" and (wait_ms := _again_ms(session, decision, envelope, attempt)) is not None:
        yield Sleep(session, wait_ms / 1000 * (1 + JITTER * random.random()) + 0.002)  # noqa: S311
        decision, following = yield from _once(session, tool, arguments, execute, decision.call.id)
        attempt += 1
        if decision.envelope is not None and following.previous_result is None:
            envelope.attempted(attempt - 1)
            envelope.repeat_refused(following)
            return envelope
        following.attempted(attempt)
        envelope = following
    return envelope


def _once(
    session: Any, tool: str, arguments: Any, execute: Execute, call_id: str | None
) -> Generator[Step, Any, tuple[Decision, Envelope]]:
    decide = partial(session._decide, tool, arguments, call_id, execute, tells=False)  # noqa: SLF001
    decision, plan = yield Store(session, decide, session._undecide)  # noqa: SLF001
    if session._on_decision is not None:  # noqa: SLF001
        session._tell(decision)  # noqa: SLF001
    if decision.envelope is not None:
        if session._approver is not None and (yield Ask(session, decision)):  # noqa: SLF001
            decide = partial(session._decide, tool, arguments, decision.call.id, execute, tells=False)  # noqa: SLF001
            decision, plan = yield Store(session, decide, session._undecide)  # noqa: SLF001
            if session._on_decision is not None:  # noqa: SLF001
                session._tell(decision)  # noqa: SLF001
        if decision.envelope is not None:
            return decision, decision.envelope
    if log.isEnabledFor(INFO):
        log.info("executing tool", extra={"tool": tool, "session": session.id})
    before = CALLER.set(session)
    try:
        result = yield Run(session, decision, plan, execute, tool)
    except Exception as error:  # a tool may raise anything; the model reads it as data
        if session._passes and (yield Store(session, partial(session._passed, decision, error))):  # noqa: SLF001
            raise
        closed = session._read_result(decision, plan, error)  # noqa: SLF001
    except BaseException as error:
        passes = partial(session._passed, decision, error)  # noqa: SLF001
        close = partial(session._settle, decision, plan, error)  # noqa: SLF001
        if is_cancelled(error):
            yield Store(session, close)
        elif not (session._passes and passes()):  # noqa: SLF001
            # The loop may be over: nobody waits for anything any more.
            close()
        raise
    else:
        closed = session._read_result(decision, plan, result)  # noqa: SLF001
    finally:
        leave(before)
    envelope = yield Store(session, partial(session._close, decision, plan, *closed))  # noqa: SLF001
    return decision, envelope


def _again_ms(session: Any, decision: Decision, envelope: Envelope, attempt: int) -> int | None:
    """
    Returns after how many milliseconds a call that failed is made again; None: it is not, or that is for the model to decide.
    """
    most = session._chain.plan(decision.call.tool).auto_ms  # noqa: SLF001
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


def at_once(way: Steps) -> Envelope:
    """
    Take the steps of a call, and wait for each.
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
        envelope: Envelope = end.value
        return envelope


async def awaited(way: Steps) -> Envelope:
    """
    Take the steps of a call, and await each.
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
        envelope: Envelope = end.value
        return envelope
