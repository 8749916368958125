"""
Calls that the library makes again by itself: the wait before that, which ends early if its session is closed.

Each attempt is a call of its own, decided and completed as any; nothing is open while it waits.
"""

import inspect
import random
import sys
import threading

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, Protocol

from guardrails.core.arguments import Arguments
from guardrails.core.engine.chain import Chain
from guardrails.core.engine.complete import Settle
from guardrails.core.engine.decision import Decision
from guardrails.core.engine.events.retries import JITTER
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.logs import log
from guardrails.core.values.types import ToolCall

from .calls.running import seconds_left
from .terms import Lay, Terms, laid_on


ROUNDING_S: Final = 0.002
"""Times are whole milliseconds: a wait is never shorter than what was advised."""
CLOSED: Final = "The session was closed before the call was made again, so it was not."
CHANGED: Final = "It was not made again: what may be called was changed meanwhile."


class Retrying(Protocol):
    """
    A session that makes calls again.
    """

    id: str
    policy: Terms
    _base: Chain | None
    _laid: tuple[Lay, ...]
    _attempts: dict[tuple[str, int | None], int]
    _specs: dict[str, Arguments]
    _sleep: Callable[[float], object] | None
    _waits: set[Callable[[], object]]

    def call(
        self, tool: str, arguments: Any, execute: Callable[[str, Any], Any], *, id: str | None = None
    ) -> Envelope: ...


class Awaiting(Retrying, Protocol):
    """
    One that makes them awaited too.
    """

    async def acall(
        self, tool: str, arguments: Any, execute: Callable[[str, Any], Any], *, id: str | None = None
    ) -> Envelope: ...


def retried(
    session: Retrying, decision: Decision, envelope: Envelope, arguments: Any, execute: Callable[..., Any]
) -> Envelope:
    """
    Returns the one envelope of the call of *decision* and of all attempts that follow the one that ended in *envelope*.
    """
    seconds = _wait_s(envelope)
    call = decision.call
    if seconds is None or not _pause(session, seconds, envelope) or not _still(session, call, envelope):
        return envelope
    with _following(session, call):
        return _answered(envelope, session.call(call.tool, arguments, execute, id=call.id))


async def aretried(
    session: Awaiting,
    decision: Decision,
    envelope: Envelope,
    arguments: Any,
    execute: Callable[..., Any],
) -> Envelope:
    """
    Returns the same, awaited.
    """
    seconds = _wait_s(envelope)
    call = decision.call
    if seconds is None or not await _apause(session, seconds, envelope) or not _still(session, call, envelope):
        return envelope
    with _following(session, call):
        return _answered(envelope, await session.acall(call.tool, arguments, execute, id=call.id))


def would_block(session: Retrying) -> bool:
    """
    Whether a wait of *session* in this thread would hold up an event loop, and all of its tasks.
    """
    asyncio = sys.modules.get("asyncio")
    # The public way to ask raises where there is none.
    return session._sleep is None and asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001


def bounded(session: Retrying, over: Settle) -> None:
    """
    Say in *over*, of a call that failed, what only its caller can know of a further attempt.
    """
    call, plan = over.decision.call, over.plan
    spec = plan.arguments or session._specs.get(call.tool)  # noqa: SLF001  one front door in two files
    # A tool may change the arguments that it is given: that would be another call.
    if tool_call(call.tool, call.given, call.id, spec, plan.tool.labels).sig != call.sig:
        over.again_ms = None
    left = seconds_left()
    over.left_ms = None if left is None else int(left * 1000)


def _wait_s(envelope: Envelope) -> float | None:
    """
    Returns the seconds to wait before the call is made again that failed as *envelope* tells. Returns None if it is
    not.
    """
    wait_ms = envelope.again_ms
    if wait_ms is None:
        return None
    return wait_ms / 1000 * (1 + JITTER * random.random()) + ROUNDING_S  # noqa: S311  no secret


def _still(session: Retrying, call: ToolCall, envelope: Envelope) -> bool:
    """
    Whether the policy of *session*, which may have changed meanwhile, still lets the library make *call* again. If it does
    not, *envelope* says so.
    """
    policy = session.policy
    if monotonic() >= policy.due_s:
        policy.look()
    chain = policy.chain
    if chain is session._base or laid_on(chain, session._laid).plan(call.tool).auto_ms is not None:  # noqa: SLF001
        return True
    envelope.hint(CHANGED)
    return False


@contextmanager
def _following(session: Retrying, call: ToolCall) -> Iterator[None]:
    """
    The next attempt at *call*. A call that its tool makes meanwhile in the same session is no answer.
    """
    attempts, key = session._attempts, (call.id, call.sig)  # noqa: SLF001
    attempts[key] = call.attempt + 1
    try:
        yield
    finally:
        attempts.pop(key, None)


def _answered(failed: Envelope, following: Envelope) -> Envelope:
    """
    The one envelope of two attempts: the later one's, or that of the one that *failed* if no further one was let run. A
    result that another call of the same has brought meanwhile is an answer too.
    """
    if following.previous_result is not None:
        following.attempted(failed.attempts)
        return following
    if following.ok or following.error_type is not None:
        if following.attempts == 1:
            following.attempted(failed.attempts + 1)
        return following
    failed.repeat_refused(following)
    return failed


def _pause(session: Retrying, seconds: float, envelope: Envelope) -> bool:
    """
    Wait; whether the session is still there then, which is said in *envelope* if it is not.
    """
    woken = threading.Event()
    with _open(session, woken.set):
        if session._sleep is None:  # noqa: SLF001
            woken.wait(seconds)
        else:
            session._sleep(seconds)  # noqa: SLF001
    if woken.is_set():
        envelope.hint(CLOSED)
    return not woken.is_set()


async def _apause(session: Retrying, seconds: float, envelope: Envelope) -> bool:
    """
    The same, awaited.
    """
    import asyncio

    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        # A loop that was closed while tasks waited waits no more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(woken.set)

    with _open(session, wake):
        if session._sleep is None:  # noqa: SLF001
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await woken.wait()
        else:
            slept = session._sleep(seconds)  # noqa: SLF001
            if inspect.isawaitable(slept):
                await slept
    if woken.is_set():
        envelope.hint(CLOSED)
    return not woken.is_set()


@contextmanager
def _open(session: Retrying, wake: Callable[[], object]) -> Iterator[None]:
    """
    A wait that `close` of *session*, or of one above it, ends by *wake*.
    """
    family: list[Any] = []
    above: Any = session
    while above is not None:
        family.append(above)
        above = above._parent  # noqa: SLF001  of one family
    for each in family:
        each._waits.add(wake)  # noqa: SLF001
    try:
        yield
    except BaseException:
        log.info("interrupted in its wait, a call is not made again", extra={"session": session.id})
        raise
    finally:
        for each in family:
            each._waits.discard(wake)  # noqa: SLF001
