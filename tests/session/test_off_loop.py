"""
Stores that may wait, and the event loop that does not.
"""

import asyncio
import random
import sqlite3
import threading

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from guardrails import (
    Budget,
    Duplicates,
    Envelope,
    MemorySink,
    MemoryStore,
    Policy,
    Session,
    SessionState,
    SqliteStore,
    Tool,
)
from guardrails.core.records.replay import replay
from tests.tables import table


T = TypeVar("T")
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
    assert session.progress["calls_used"] == 2


def test_whatever_else_a_host_asks_of_a_session_is_asked_off_the_loop(path: Path) -> None:
    session = Policy().session("s", store=SqliteStore(path, timeout=60))

    async def main() -> None:
        with another_process(path):
            charge = asyncio.create_task(
                session.off_loop(session.charge, model="m", usage={"input_tokens": 5, "output_tokens": 1})
            )
            turn = asyncio.create_task(session.off_loop(session.begin_turn, 2))
            await tick()
            assert not charge.done()
            assert not turn.done()
        await asyncio.gather(charge, turn)
        assert await session.off_loop(lambda: session.exhausted) is False

    asyncio.run(main())


def test_what_the_function_raises_is_raised(path: Path) -> None:
    session = Policy().session("s", store=SqliteStore(path))
    with pytest.raises(Exception, match="calls"):
        asyncio.run(session.off_loop(session.begin_turn, -1))


class Threads(MemoryStore):
    """
    A store that notes the threads in which it is asked, and waits if it is told to.
    """

    def __init__(self, *, blocks: bool) -> None:
        self.blocks = blocks
        self.names: list[str] = []
        self.waits = threading.Event()
        self.waits.set()
        self.waiting = threading.Event()
        super().__init__()

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        self.names.append(threading.current_thread().name)
        if not self.waits.is_set():
            self.waiting.set()
            self.waits.wait(60)
        return super().update(keys, step)


@table("blocks", [False, True])
def test_a_store_that_does_not_block_is_asked_right_here(*, blocks: bool) -> None:
    store = Threads(blocks=blocks)
    decided = []
    session = Policy().session("s", store=store, on_decision=lambda one: decided.append(threading.current_thread()))

    async def main() -> None:
        await session.acall("t", {}, ok)
        await session.acall("t", {"a": 1}, lambda tool, arguments: 1 / 0)
        await session.off_loop(session.begin_turn)

    asyncio.run(main())
    away = {name.startswith("guardrails-store") for name in store.names}
    assert (away, len(store.names)) == ({blocks}, 5)
    # The host's own hook is called where the host is.
    assert decided == [threading.main_thread()] * 2


def test_a_result_is_read_where_its_tool_ran() -> None:
    session = Policy().session("s", store=Threads(blocks=True))

    def items(tool: str, arguments: Any) -> Iterator[bool]:
        yield threading.current_thread() is threading.main_thread()

    assert asyncio.run(session.acall("t", {}, items)).value == [True]


def held(session: Session) -> int:
    return session._read(lambda state, now: len(state.pending))


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
            assert not call.done()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert (ran, held(session), session.progress["calls_used"]) == ([], 0, 0)


@pytest.mark.parametrize("before", [None, "looked", "suspended"])
def test_a_call_that_is_claimed_for_nobody_may_be_claimed_again(path: Path, before: str | None) -> None:
    policy = Policy([Budget(max_cost_usd=1.0), Duplicates()], tools=[Tool(name="t", cost_usd=0.4)])
    session = policy.session("s", store=SqliteStore(path, timeout=60))
    if before is not None:
        made = session.decide("t", {}, id="c1", claim=before == "suspended")
        if before == "suspended":
            session.suspend(made)

    async def main() -> None:
        with another_process(path):
            claim = asyncio.create_task(session.off_loop(session.decide, "t", {}, id="c1", claim=True))
            await tick(10)
            claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim

    asyncio.run(main())
    assert (held(session), session.progress["calls_used"]) == ((0, 0) if before is None else (1, 1))
    assert session.decide("t", {}, id="c1", claim=True).allowed
    assert session.progress["calls_used"] == 1


def test_a_look_that_is_cancelled_takes_no_call_from_who_runs_it(path: Path) -> None:
    session = Policy([Duplicates()]).session("s", store=SqliteStore(path, timeout=60))
    session.decide("t", {}, id="c1", claim=True)

    async def main() -> None:
        with another_process(path):
            look = asyncio.create_task(session.off_loop(session.decide, "t", {}, id="c1"))
            await tick(10)
            look.cancel()
        with pytest.raises(asyncio.CancelledError):
            await look

    asyncio.run(main())
    assert not session.decide("t", {}, id="c1", claim=True).allowed
    assert session.complete("c1", "ok").ok


def test_a_call_that_is_cancelled_while_it_is_settled_is_settled() -> None:
    sink, store = MemorySink(), Threads(blocks=True)
    session = Policy().session("s", store=store, records=sink)

    async def made(tool: str, arguments: Any) -> str:
        store.waits = threading.Event()
        return "made"

    async def main() -> None:
        call = asyncio.create_task(session.acall("t", {}, made))
        assert await asyncio.to_thread(store.waiting.wait, 60)
        call.cancel()
        await tick()
        assert not call.done()
        store.waits.set()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    session.close()
    assert held(session) == 0
    assert [line["status"] for line in sink.records if line["event"] == "settle"] == ["ok"]


def test_what_a_host_interrupts_stays_open_also_if_it_is_cancelled_when_it_is_made_again(path: Path) -> None:
    class Interrupt(Exception):
        """The host's own."""

    def asks(tool: str, arguments: Any) -> None:
        raise Interrupt

    store = SqliteStore(path, timeout=60)
    session = Policy([Duplicates()]).session("s", store=store).scoped({}, passes=(Interrupt,))

    async def main() -> Envelope:
        with pytest.raises(Interrupt):
            await session.acall("t", {}, asks, id="c1")
        with another_process(path):
            again = asyncio.create_task(session.acall("t", {}, ok, id="c1"))
            await tick(10)
            again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await again
        assert held(session) == 1
        return await session.acall("t", {}, ok, id="c1")

    assert asyncio.run(main()).value == "ok"
    assert (held(session), session.progress["calls_used"]) == (0, 1)


@pytest.mark.parametrize("seed", range(4))
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
