"""
Tools with a time limit, those that give their result bit by bit, and event loops that never wait.
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

from guardrails import (
    Budget,
    Duplicates,
    Envelope,
    Failed,
    MemorySink,
    MemoryStore,
    Policy,
    Retryable,
    Session,
    SqliteStore,
    Success,
    Tool,
    Truncate,
)
from tests.core.guards.calls import gives
from tests.session.conftest import never, replays
from tests.tables import table


def make(clock: Any, timeout: float | None = None, *, left: float | None = None) -> tuple[Any, MemorySink]:
    """
    A session of which *left* seconds are left.
    """
    budget = Budget(max_cost_usd=9, max_elapsed=None if left is None else 10)
    policy, sink = Policy([Truncate(max_bytes=2_000), budget], tools=[Tool(name="t", timeout=timeout)]), MemorySink()
    session = policy.session("s", clock=clock, records=sink)
    session.request()
    clock.advance(10 - (left or 0))
    return session, sink


def run(session: Any, execute: Any, *, awaited: bool) -> Envelope:
    envelope: Envelope = asyncio.run(session.acall("t", {}, execute)) if awaited else session.call("t", {}, execute)
    return envelope


def late(sink: MemorySink) -> list[bool]:
    """
    Of each end that was recorded, whether it came too late; what still runs is waited for.
    """
    for thread in threading.enumerate():
        if thread.name == "guardrails-tool":
            thread.join(60)
    return [record["late"] for record in sink.records if record["event"] == "settle"]


async def numbers() -> AsyncIterator[int]:
    n = 0
    while True:
        yield n
        n += 1


@table("timeout", [None, 5.0])
@table(("execute", "cost"), [(lambda *_: Success(numbers(), cost_usd=0.5), 0.5), (lambda *_: numbers(), 0.0)])
def test_an_endless_async_generator_is_cut_and_said_not_to_be_complete(
    execute: Any, cost: float, timeout: Any, clock: Any
) -> None:
    session, _ = make(clock, timeout)
    envelope = run(session, execute, awaited=True)
    assert envelope.value[:3] == [0, 1, 2]
    assert (envelope.ok, envelope.is_complete, session.ledger.cost_usd) == (True, False, cost)


async def slow() -> AsyncIterator[int]:
    yield 1
    await asyncio.Event().wait()


async def coroutine(*_: Any) -> Any:
    return slow()


@table(("execute", "awaited"), [(lambda *_: slow(), True), (coroutine, True), (None, False), (None, True)])
def test_d12_a_generator_that_hangs_half_way_ends_at_the_timeout(execute: Any, awaited: bool, clock: Any) -> None:
    release, started = threading.Event(), time.monotonic()

    def stuck(*_: Any) -> Iterator[int]:
        yield 1
        release.wait(100)

    envelope = run(make(clock, 0.05)[0], execute or stuck, awaited=awaited)
    release.set()
    assert (envelope.status, envelope.error_type) == ("error", "timeout")
    assert time.monotonic() - started < 50


@table("awaited", [False, True])
@table(("error", "timeout"), [
    *((error, timeout) for error in (StopIteration("x"), StopAsyncIteration("x"), ValueError("x")) for timeout in (None, 5.0)),
    (KeyboardInterrupt(), None),
])  # fmt: skip
def test_whatever_is_raised_even_while_a_result_is_read_is_an_error_at_once_and_settled(
    error: BaseException, timeout: Any, awaited: bool, clock: Any
) -> None:
    def raises(*_: Any) -> Any:
        raise error

    def interrupted(*_: Any) -> Iterator[int]:
        yield 1
        raise error

    session, sink = make(clock, timeout)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            run(session, interrupted, awaited=awaited)
    else:
        assert run(session, raises, awaited=awaited).error_type != "timeout"
    assert [(one["event"], one.get("status")) for one in sink.records[1:]] == [("call", None), ("settle", "error")]


@table("timeout", [None, 60.0])
@table("awaited", [False, True])
def test_a_synchronous_tool_is_answered_when_the_session_s_time_is_up(awaited: bool, timeout: Any, clock: Any) -> None:
    release = threading.Event()
    session, sink = make(clock, timeout, left=0.05)
    envelope = run(session, lambda *_: release.wait(100), awaited=awaited)
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
    session, sink = make(clock, timeout, left=left)

    async def main() -> Envelope:
        release = asyncio.Event()

        async def deaf(*_: Any) -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "the late value"

        envelope: Envelope = await asyncio.wait_for(session.acall("t", {}, deaf), 60)
        release.set()
        await tick(3)
        return envelope

    assert asyncio.run(main()).error_type == "timeout"
    assert late(sink) == [False, True]
    assert orjson.dumps(sink.records[-1]["result"]) == b'"the late value"'


def test_a_cancelled_call_waits_for_its_tool_to_end_and_is_settled(clock: Any) -> None:
    (session, sink), ended = make(clock, 5.0), list[str]()

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


@contextmanager
def another_process(path: Path) -> Iterator[None]:
    """
    While somebody else changes the file *path*.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def tick(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "states.db"


def test_the_loop_goes_on_while_another_process_holds_the_file_of_a_call(path: Path) -> None:
    session = Policy().session("s", store=SqliteStore(path, timeout=60))

    async def works(tool: str, arguments: Any) -> str:
        await asyncio.sleep(0)
        return "ok"

    async def main() -> Envelope:
        await session.acall("t", {}, works)
        with another_process(path):
            call = asyncio.create_task(session.acall("t", {"a": 1}, works))
            # Anything that does not wait is over by then.
            await tick(300)
            assert not call.done()
        return await call

    assert asyncio.run(main()).value == "ok"
    assert session.ledger.progress["calls_used"] == 2


async def held(session: Session) -> int:
    """
    How many calls are open, once what was asked of the store before is done.
    """
    await session.ledger.off_loop(str)
    return session.ledger.read(lambda state, _: len(state.pending))


@pytest.mark.parametrize("before", [None, "looked", "suspended"])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_call_that_is_claimed_for_nobody_may_be_claimed_again(path: Path, before: str | None, awaited: bool) -> None:
    policy = Policy([Budget(max_cost_usd=1.0), Duplicates()], tools=[Tool(name="t", cost_usd=0.4)])
    session = policy.session("s", store=SqliteStore(path, timeout=60))
    if before is not None:
        made = session.decide("t", {}, id="c1", claim=before == "suspended")
        if before == "suspended":
            session.calls.suspend(made)

    async def main() -> int:
        with another_process(path):
            claim = asyncio.create_task(
                session.acall("t", {}, never, id="c1")
                if awaited
                else session.ledger.off_loop(session.decide, "t", {}, id="c1", claim=True)
            )
            for _ in range(5):
                await tick(10)
                claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        return await held(session)

    open_calls = 0 if before is None else 1
    assert (asyncio.run(main()), session.ledger.progress["calls_used"]) == (open_calls, open_calls)
    assert session.decide("t", {}, id="c1", claim=True).allowed
    assert session.ledger.progress["calls_used"] == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_storm_of_cancellations_loses_no_settle_and_the_records_replay(path: Path, seed: int) -> None:
    policy, sink, chance = Policy.load("default"), MemorySink(), random.Random(seed)
    session = policy.session("s", store=SqliteStore(path, timeout=60), records=sink)

    async def main() -> int:
        async def works(tool: str, arguments: Any) -> str:
            await tick(arguments["turns"])
            return f"{arguments['n']} done"

        asked = [{"n": n, "turns": chance.randrange(60)} for n in range(40)]
        calls = [asyncio.create_task(session.acall("search", one, works)) for one in asked]
        while not all(call.done() for call in calls):
            await tick(chance.randrange(1, 40))
            chance.choice(calls[:20]).cancel()
        return await held(session)

    assert asyncio.run(main()) == 0
    session.close()
    lines = {
        event: [line for line in sink.records if line["event"] == event] for event in ("call", "settle", "release")
    }
    ended = sorted(line["call_n"] for event in ("settle", "release") for line in lines[event])
    assert ended == [line["n"] for line in lines["call"] if line["decision"] == "allow"]
    assert [line["status"] for line in lines["settle"]].count("ok") >= 20
    assert replays(policy, sink) > 20


# Retries that the library makes itself: each is a call of its own, and the model reads one envelope


LOOK = Tool(name="look", read_only=True)
RESET = ConnectionError("reset")


@pytest.fixture(params=["call", "acall"])
def retried(request: Any, clock: Any) -> Any:
    """
    The envelope of a call whose attempts end by *answers*, its session, and how long it waited between them.
    """

    def call(*answers: Any, guards: Any = (), tool: Tool = LOOK, **options: Any) -> tuple[Envelope, Any, list[float]]:
        waits, left = list[float](), iter(answers)

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            clock.advance(seconds)

        policy = Policy([Retryable(auto=True), *guards], tools=[tool])
        session = policy.session("s", clock=clock, sleep=sleep, **options)

        def execute(*of: Any) -> Any:
            return gives(next(left))(*of)

        made = getattr(session, request.param)("look", {"q": 1}, execute)
        return made if request.param == "call" else asyncio.run(made), session, waits

    return call


@table("tool", [LOOK, Tool(name="look", repeats="evidence"), Tool(name="look", idempotent=True)])
def test_a_failure_that_passes_is_made_again_and_the_model_reads_one_envelope(tool: Any, retried: Any) -> None:
    sink, store = MemorySink(), MemoryStore()
    envelope, session, waits = retried(RESET, RESET, "found", tool=tool, records=sink, store=store)
    assert (envelope.value, envelope.attempts, session.ledger.progress["calls_used"]) == ("found", 3, 3)
    assert 1 <= waits[0] <= 1.3
    assert 5 <= waits[1] <= 6.1
    # Every attempt is recorded.
    assert [line["event"] for line in sink.records] == ["call", "settle"] * 3
    replays(session.ledger.policy, sink, store)


@table(("tool", "error"), [
    (Tool(name="look"), RESET), (Tool(name="look", idempotent=False, read_only=True), TimeoutError("late")),
    (LOOK, ValueError("no such thing")),
])  # fmt: skip
def test_what_is_not_safe_or_does_not_pass_is_not_made_again(tool: Tool, error: Any, retried: Any) -> None:
    envelope, _, waits = retried(error, "found", tool=tool)
    assert (envelope.status, waits) == ("error", [])


def test_an_attempt_that_is_refused_leaves_the_failure_and_says_why(retried: Any) -> None:
    envelope, *_ = retried(RESET, RESET, "found", guards=[Budget(max_calls=2)])
    assert (envelope.error_type, envelope.attempts, envelope.retryable) == ("connection", 2, False)
    assert envelope.limit_message is not None


def test_a_call_within_a_loop_that_a_wait_would_block_is_not_made_again(clock: Any) -> None:
    session = Policy([Retryable(auto=True)], tools=[LOOK]).session("s", clock=clock)

    async def within() -> int | None:
        envelope: Envelope = session.call("look", {}, gives(Failed("reset", error_type="connection")))
        return envelope.attempts

    assert asyncio.run(within()) == 1
