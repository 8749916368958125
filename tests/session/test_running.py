"""
Tools with a time limit, and those that give their result bit by bit.
"""

import asyncio
import threading
import time

from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest

from guardrails import Budget, Envelope, MemorySink, Policy, Retryable, SessionError, Success, Summary, Tool, Truncate
from tests.tables import table


def make(clock: Any, timeout: float | None = None, **settings: Any) -> Any:
    tool = Tool(name="t", timeout=timeout)
    policy = Policy([Summary(), Retryable(), Truncate(max_bytes=2_000), Budget(max_cost_usd=9)], tools=[tool])
    return policy.session("s", clock=clock, **settings)


def run(session: Any, execute: Any, *, awaited: bool) -> Envelope:
    envelope: Envelope = asyncio.run(session.acall("t", {}, execute)) if awaited else session.call("t", {}, execute)
    return envelope


async def numbers() -> AsyncIterator[int]:
    n = 0
    while True:
        yield n
        n += 1


@table("timeout", [None, 5.0])
@table("wrapped", [False, True])
def test_an_endless_async_generator_is_cut_and_said_not_to_be_complete(
    timeout: float | None, wrapped: bool, clock: Any
) -> None:
    def execute(*_: Any) -> Any:
        return Success(numbers(), cost_usd=0.5) if wrapped else numbers()

    session = make(clock, timeout)
    envelope = run(session, execute, awaited=True)
    assert envelope.ok
    assert envelope.value[:3] == [0, 1, 2]
    assert (envelope.is_complete, envelope.total_matches) == (False, None)
    assert session.ledger.cost_usd == (0.5 if wrapped else 0.0)


@table("kind", ["async generator", "generator", "generator, awaited", "from a coroutine"])
def test_d12_a_generator_that_hangs_half_way_ends_at_the_timeout(kind: str, clock: Any) -> None:
    release = threading.Event()

    async def slow() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    def stuck(*_: Any) -> Iterator[int]:
        yield 1
        release.wait(10)

    async def coroutine(*_: Any) -> Any:
        return slow()

    execute: Any = {"async generator": lambda *_: slow(), "from a coroutine": coroutine}.get(kind, stuck)
    started = time.monotonic()
    envelope = run(make(clock, 0.05), execute, awaited=kind != "generator")
    release.set()
    assert (envelope.status, envelope.error_type) == ("error", "timeout")
    assert time.monotonic() - started < 5


@table("awaited", [False, True])
@table("timeout", [None, 5.0])
@table("error", [StopIteration("x"), StopAsyncIteration("x"), ValueError("x")])
def test_whatever_a_tool_raises_is_an_error_at_once(
    error: Exception, timeout: float | None, awaited: bool, clock: Any
) -> None:
    def execute(*_: Any) -> Any:
        raise error

    envelope = run(make(clock, timeout), execute, awaited=awaited)
    assert envelope.status == "error"
    assert envelope.error_type != "timeout"


@table("awaited", [False, True])
def test_a_generator_that_is_interrupted_while_it_is_read_is_settled(awaited: bool, clock: Any) -> None:
    def interrupted(*_: Any) -> Iterator[int]:
        yield 1
        raise KeyboardInterrupt

    sink = MemorySink()
    session = make(clock, records=sink)
    with pytest.raises(KeyboardInterrupt):
        run(session, interrupted, awaited=awaited)
    assert [record["event"] for record in sink.records] == ["call", "settle"]
    assert sink.records[-1]["status"] == "error"


def test_a_generator_that_is_interrupted_while_its_host_completes_the_call_is_settled(clock: Any) -> None:
    def interrupted() -> Iterator[int]:
        yield 1
        raise KeyboardInterrupt

    session = make(clock)
    decision = session.decide("t", {}, claim=True)
    with pytest.raises(KeyboardInterrupt):
        session.complete(decision, interrupted())
    with pytest.raises(SessionError, match="no open calls have the id"):
        session.complete(decision.call.id, "late")


def test_a_generator_that_fails_half_way_has_failed(clock: Any) -> None:
    async def fails() -> AsyncIterator[int]:
        yield 1
        raise ConnectionResetError("reset")

    envelope = run(make(clock), lambda *_: fails(), awaited=True)
    assert (envelope.status, envelope.error_type) == ("error", "connection")


def late_records(sink: MemorySink) -> list[Any]:
    for thread in threading.enumerate():
        if thread.name == "guardrails-tool":
            thread.join(10)
    return [record["late"] for record in sink.records if record["event"] == "settle"]


@table("timeout", [None, 60.0])
@table("awaited", [False, True])
def test_a_synchronous_tool_is_answered_when_the_session_s_time_is_up(
    awaited: bool, timeout: float | None, clock: Any
) -> None:
    release, sink = threading.Event(), MemorySink()

    def stuck(*_: Any) -> str:
        release.wait(10)
        return "late"

    session = Policy([Budget(max_elapsed=10)], tools=[Tool(name="t", timeout=timeout)]).session(
        "s", clock=clock, records=sink
    )
    session.request()
    clock.advance(9.95)
    envelope = run(session, stuck, awaited=awaited)
    assert (envelope.error_type, envelope.error_message) == (
        "timeout",
        "no result within 0.051 s, when the session's time was up",
    )
    clock.advance(0.051)
    assert session.exhausted == "budget.max_elapsed"
    release.set()
    assert late_records(sink) == [False, True]


def test_the_smaller_of_the_tool_s_and_the_session_s_time_is_the_limit(clock: Any) -> None:
    session = Policy([Budget(max_elapsed=10)], tools=[Tool(name="t", timeout=0.02)]).session("s", clock=clock)
    release = threading.Event()
    envelope = run(session, lambda *_: release.wait(10), awaited=False)
    release.set()
    assert envelope.error_message == "no result within 0.02 s"


@table("declared", [True, False])
def test_an_asynchronous_tool_that_swallows_its_cancellation_is_answered_in_time(declared: bool, clock: Any) -> None:
    sink = MemorySink()
    tool = Tool(name="t", timeout=0.02 if declared else None)
    session = Policy([Budget(max_elapsed=10)], tools=[tool]).session("s", clock=clock, records=sink)
    session.request()
    clock.advance(5 if declared else 9.98)

    async def main() -> Envelope:
        release = asyncio.Event()

        async def deaf(*_: Any) -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "the late value"

        envelope: Envelope = await asyncio.wait_for(session.acall("t", {}, deaf), 5)
        release.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return envelope

    assert asyncio.run(main()).error_type == "timeout"
    settled = [record for record in sink.records if record["event"] == "settle"]
    assert [record["late"] for record in settled] == [False, True]
    assert orjson.dumps(settled[-1]["result"]) == b'"the late value"'


def test_a_tool_that_needs_its_thread_keeps_it(clock: Any) -> None:
    tool = Tool(name="t", same_thread=True)
    session = Policy([Budget(max_elapsed=10)], tools=[tool]).session("s", clock=clock)
    assert run(session, lambda *_: threading.get_ident(), awaited=False).value == threading.get_ident()


def test_a_cancelled_call_waits_for_its_tool_to_end(clock: Any) -> None:
    session, ended = make(clock, 5.0), []

    async def main() -> None:
        started = asyncio.Event()

        async def slow(*_: Any) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append("cleaned up")

        task = asyncio.ensure_future(session.acall("t", {}, slow))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["cleaned up"]

    asyncio.run(main())
