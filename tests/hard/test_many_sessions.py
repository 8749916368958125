"""
Many sessions and a long time: memory stays where it is.
"""

import gc
import os
import random
import tracemalloc

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Growth, Policy, Retryable, SqliteStore, Summary, Truncate
from guardrails.sinks import JsonLines
from guardrails.stores.memory import MemoryStore


def policy() -> Policy:
    guards = [
        Budget(max_calls=10_000_000),
        Growth(max_calls_per_second=50),
        Duplicates(window=20),
        Retryable(),
        Summary(),
    ]
    return Policy([*guards, Truncate()])


def search(tool: str, arguments: Any) -> Any:
    return {"found": [arguments, "x" * 300]}


def resident() -> int:
    """
    Bytes of memory that the process holds now.
    """
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_100_000_idle_sessions_and_1_000_active_ones(clock: Any, long: bool) -> None:
    """
    All have called before; the idle ones are kept packed.
    """
    idle, active = (100_000, 1_000) if long else (4_000, 100)
    shared, store = policy(), MemoryStore(live=active)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(idle):
            session = shared.session(f"idle-{number}", store=store, clock=clock)
            for n in range(3):
                session.call("search", {"query": f"{number} {n}"}, search)
        running = [shared.session(f"active-{number}", store=store, clock=clock) for number in range(active)]
        for n in range(25):
            clock.advance(1)
            for session in running:
                session.call("search", {"query": n}, search)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(store) == idle + active
    print(f"{kept / 2**20:,.1f} MiB for {idle:,} idle and {active:,} active sessions")
    # 1.5 KB an idle session with a full window (these have three calls), 12 KB an active one, and what the policy keeps
    # of results (`results_bytes`, 16 MiB here) whatever the number of sessions.
    assert kept < idle * 1_536 + active * 12_288 + 24 * 2**20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
@pytest.mark.slow
def test_a_day_of_traffic_leaves_no_trace_in_memory(clock: Any, tmp_path: Path, long: bool) -> None:
    """
    Sessions come and go, calls repeat, fail and are refused, records are written, from midnight to midnight.
    """
    hours = 24
    calls_an_hour = 40_000 if long else 600
    shared, store = policy(), MemoryStore(live=50)
    sink = JsonLines(tmp_path / "records.jsonl")
    rng = random.Random(1)

    def execute(tool: str, arguments: Any) -> Any:
        if rng.random() < 0.1:
            raise rng.choice((TimeoutError, ConnectionError, ValueError))("no")
        return search(tool, arguments)

    held: list[int] = []
    for hour in range(hours):
        for n in range(calls_an_hour):
            clock.advance(3_600 / calls_an_hour)
            name = f"s-{hour}-{n * 40 // calls_an_hour}"
            session = shared.session(name, store=store, clock=clock, records=sink)
            session.call(rng.choice(("search", "read", "write")), {"n": rng.randrange(200)}, execute)
            if n % (calls_an_hour // 40) == calls_an_hour // 40 - 1:
                store.forget(name)
        sink.flush(10)
        gc.collect()
        held.append(resident())
    sink.close()
    print("MiB resident after each hour:", *(f"{one / 2**20:.0f}" for one in held))
    # The first hours fill what is bounded: results that are kept, the queue, the allocator's pools.
    assert held[-1] - held[hours // 4] < 24 * 2**20


def test_100_000_sessions_rest_in_a_file(clock: Any, tmp_path: Path, long: bool) -> None:
    number = 100_000 if long else 2_000
    shared = policy()
    with SqliteStore(tmp_path / "state.db", live=10, clock=clock) as store:
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for n in range(number):
                shared.session(f"s-{n}", store=store, clock=clock).call("search", {"n": n}, search)
            kept = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert len(store) == number
    size = (tmp_path / "state.db").stat().st_size
    print(f"{size / number:,.0f} bytes a session in the file, {kept / 2**20:.1f} MiB in memory")
    assert size < number * 1_536
    assert kept < 24 * 2**20
