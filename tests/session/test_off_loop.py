"""
Stores that may wait, and the event loop that does not.
"""

import asyncio
import random
import sqlite3

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Envelope, MemorySink, Policy, Session, SqliteStore, Tool
from tests.replaying import replay


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
