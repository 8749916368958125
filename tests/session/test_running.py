"""
Tools with a time limit, and those that give their result bit by bit.
"""

import asyncio
import random
import sqlite3
import threading
import time

from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from guardrails import Envelope, MemorySink, Policy, Retryable, Session, SqliteStore, Success, Summary, Tool, Truncate
from guardrails.core.guards.budget import Budget
from guardrails.core.guards.duplicates import Duplicates
from tests.replaying import replay
from tests.tables import table


def make(clock: Any, timeout: float | None = None, **settings: Any) -> Any:
    tool = Tool(name="t", timeout=timeout)
    policy = Policy([Summary(), Retryable(), Truncate(max_bytes=2_000), Budget(max_cost_usd=9)], tools=[tool])
    return policy.session("s", clock=clock, **settings)


def run(session: Any, execute: Any, *, awaited: bool) -> Envelope:
    envelope: Envelope = asyncio.run(session.acall("t", {}, execute)) if awaited else session.call("t", {}, execute)
    return envelope


def ending(clock: Any, timeout: float | None, left: float, sink: MemorySink | None = None) -> Any:
    """
    A session of which *left* seconds are left.
    """
    tools = [Tool(name="t", timeout=timeout)]
    session = Policy([Budget(max_elapsed=10)], tools=tools).session("s", clock=clock, records=sink)
    session.request()
    clock.advance(10 - left)
    return session


def late(sink: MemorySink) -> list[bool]:
    """
    Of each end that was recorded, whether it came too late; what still runs is waited for.
    """
    for thread in threading.enumerate():
        if thread.name == "guardrails-tool":
            thread.join(10)
    return [record["late"] for record in sink.records if record["event"] == "settle"]


async def numbers() -> AsyncIterator[int]:
    n = 0
    while True:
        yield n
        n += 1


@table("timeout", [None, 5.0])
@table("wrapped", [False, True])
def test_an_endless_async_generator_is_cut_and_said_not_to_be_complete(timeout: Any, wrapped: bool, clock: Any) -> None:
    session = make(clock, timeout)
    envelope = run(session, lambda *_: Success(numbers(), cost_usd=0.5) if wrapped else numbers(), awaited=True)
    assert envelope.value[:3] == [0, 1, 2]
    assert (envelope.ok, envelope.is_complete, envelope.total_matches) == (True, False, None)
    assert session.ledger.cost_usd == (0.5 if wrapped else 0.0)


async def slow() -> AsyncIterator[int]:
    yield 1
    await asyncio.Event().wait()


async def coroutine(*_: Any) -> Any:
    return slow()


@table(("execute", "awaited"), [(lambda *_: slow(), True), (coroutine, True), (None, False), (None, True)])
def test_d12_a_generator_that_hangs_half_way_ends_at_the_timeout(execute: Any, awaited: bool, clock: Any) -> None:
    release = threading.Event()

    def stuck(*_: Any) -> Iterator[int]:
        yield 1
        release.wait(10)

    started = time.monotonic()
    envelope = run(make(clock, 0.05), execute or stuck, awaited=awaited)
    release.set()
    assert (envelope.status, envelope.error_type) == ("error", "timeout")
    assert time.monotonic() - started < 5


@table("awaited", [False, True])
@table("timeout", [None, 5.0])
@table("error", [StopIteration("x"), StopAsyncIteration("x"), ValueError("x")])
def test_whatever_a_tool_raises_is_an_error_at_once(error: Exception, timeout: Any, awaited: bool, clock: Any) -> None:
    def execute(*_: Any) -> Any:
        raise error

    envelope = run(make(clock, timeout), execute, awaited=awaited)
    assert envelope.status == "error"
    assert envelope.error_type != "timeout"


def interrupted(*_: Any) -> Iterator[int]:
    yield 1
    raise KeyboardInterrupt


@table("awaited", [False, True])
def test_a_generator_that_is_interrupted_while_it_is_read_is_settled(awaited: bool, clock: Any) -> None:
    sink = MemorySink()
    with pytest.raises(KeyboardInterrupt):
        run(make(clock, records=sink), interrupted, awaited=awaited)
    assert [(record["event"], record.get("status")) for record in sink.records] == [("call", None), ("settle", "error")]


@table("timeout", [None, 60.0])
@table("awaited", [False, True])
def test_a_synchronous_tool_is_answered_when_the_session_s_time_is_up(awaited: bool, timeout: Any, clock: Any) -> None:
    release, sink = threading.Event(), MemorySink()
    session = ending(clock, timeout, 0.05, sink)
    envelope = run(session, lambda *_: release.wait(10), awaited=awaited)
    assert envelope.error_type == "timeout"
    assert envelope.error_message == "no result within 0.051 s, when the session's time was up"
    clock.advance(0.051)
    assert session.exhausted == "budget.max_elapsed"
    release.set()
    assert late(sink) == [False, True]


@table(("timeout", "left"), [(0.02, 5), (None, 0.02)])
def test_an_asynchronous_tool_that_swallows_its_cancellation_is_answered_in_time(
    timeout: float | None, left: float, clock: Any
) -> None:
    sink = MemorySink()
    session = ending(clock, timeout, left, sink)

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
        for _ in range(3):
            await asyncio.sleep(0)
        return envelope

    assert asyncio.run(main()).error_type == "timeout"
    assert late(sink) == [False, True]
    assert orjson.dumps(sink.records[-1]["result"]) == b'"the late value"'


def test_a_cancelled_call_waits_for_its_tool_to_end_and_is_settled(clock: Any) -> None:
    sink, ended = MemorySink(), list[str]()
    session = make(clock, 5.0, records=sink)

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
    assert sink.records[-1]["error_type"] == "cancelled"


# Stores that may wait, and the event loop that does not


TICKS = 300
"""Turns of the event loop in which anything that does not wait is over."""


@contextmanager
def another_process(path: Path) -> Iterator[None]:
    """
    While somebody else changes the file *path*.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def tick(turns: int = TICKS) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def ok(tool: str, arguments: Any) -> str:
    await asyncio.sleep(0)
    return "ok"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "states.db"


def test_the_loop_goes_on_while_another_process_holds_the_file_of_a_call(path: Path) -> None:
    session = Policy().session("s", store=SqliteStore(path, timeout=60))

    async def main() -> Envelope:
        await session.acall("t", {}, ok)
        with another_process(path):
            call = asyncio.create_task(session.acall("t", {"a": 1}, ok))
            await tick()
            assert not call.done()
        return await call

    assert asyncio.run(main()).value == "ok"
    assert session.ledger.progress["calls_used"] == 2


async def nothing_waits(session: Session) -> None:
    """
    What was asked of the store before is done.
    """
    await session.ledger.off_loop(str)


def held(session: Session) -> int:
    return session.ledger.read(lambda state, now: len(state.pending))


def test_a_call_that_is_cancelled_while_it_is_decided_leaves_nothing_open(path: Path) -> None:
    policy = Policy([Budget(max_cost_usd=1.0)], tools=[Tool(name="t", cost_usd=0.4)])
    session = policy.session("s", store=SqliteStore(path, timeout=60))
    ran = []

    async def main() -> None:
        with another_process(path):
            call = asyncio.create_task(session.acall("t", {}, lambda tool, arguments: ran.append(1)))
            await tick(10)
            for _ in range(5):
                call.cancel()
                await tick(10)
        with pytest.raises(asyncio.CancelledError):
            await call
        await nothing_waits(session)

    asyncio.run(main())
    assert (ran, held(session), session.ledger.progress["calls_used"]) == ([], 0, 0)


@pytest.mark.parametrize("before", [None, "looked", "suspended"])
def test_a_call_that_is_claimed_for_nobody_may_be_claimed_again(path: Path, before: str | None) -> None:
    policy = Policy([Budget(max_cost_usd=1.0), Duplicates()], tools=[Tool(name="t", cost_usd=0.4)])
    session = policy.session("s", store=SqliteStore(path, timeout=60))
    if before is not None:
        made = session.decide("t", {}, id="c1", claim=before == "suspended")
        if before == "suspended":
            session.calls.suspend(made)

    async def main() -> None:
        with another_process(path):
            claim = asyncio.create_task(session.ledger.off_loop(session.decide, "t", {}, id="c1", claim=True))
            await tick(10)
            claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        await nothing_waits(session)

    asyncio.run(main())
    assert (held(session), session.ledger.progress["calls_used"]) == ((0, 0) if before is None else (1, 1))
    assert session.decide("t", {}, id="c1", claim=True).allowed
    assert session.ledger.progress["calls_used"] == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_storm_of_cancellations_loses_no_settle_and_the_records_replay(path: Path, seed: int) -> None:
    sink = MemorySink()
    policy = Policy.load("default")
    session = policy.session("s", store=SqliteStore(path, timeout=60), records=sink)
    chance = random.Random(seed)

    async def main() -> None:
        async def works(tool: str, arguments: Any) -> str:
            await tick(arguments["turns"])
            return f"{arguments['n']} done"

        calls = [
            asyncio.create_task(session.acall("search", {"n": n, "turns": chance.randrange(60)}, works))
            for n in range(40)
        ]
        while not all(call.done() for call in calls):
            await tick(chance.randrange(1, 40))
            chance.choice(calls[:20]).cancel()
        await nothing_waits(session)

    asyncio.run(main())
    session.close()
    assert held(session) == 0
    numbers = [line["n"] for line in sink.records]
    assert numbers == list(range(1, len(numbers) + 1))
    settled = [line for line in sink.records if line["event"] == "settle"]
    admitted = [line for line in sink.records if line["event"] == "call" and line["decision"] == "allow"]
    released = [line for line in sink.records if line["event"] == "release"]
    assert sorted(line["call_n"] for line in (*settled, *released)) == [line["n"] for line in admitted]
    assert [line["status"] for line in settled].count("ok") >= 20
    again = list(replay(policy.chain, sink.records))
    assert again
    assert all(one.same for one in again)
