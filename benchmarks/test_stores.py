"""
What a step costs in a file of SQLite and in a server of Redis, and what 100,000 idle sessions take there and in memory.

A step's yardstick of its own is a bare transaction that reads and writes a row as long by Python's `sqlite3`, or a bare round trip
to the server by the package `redis`.
"""

import gc
import os
import sqlite3
import time
import tracemalloc

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from guardrails import MemoryStore, Policy, RedisStore, SqliteStore
from guardrails.core.chain import Chain
from guardrails.core.packing import pack
from guardrails.core.state import SessionState, admit, settle, touch
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.stores import Store
from guardrails.stores.memory import LIVE
from tests.stores.redis_server import in_redis, shared
from tests.stores.test_redis import workers


SESSIONS = 100_000
BATCH = 1_000
SINGLE = 5_000
EACH = 10
"""Steps timed at once: so few that a checkpoint, which waits for the disk, is in few of the rounds."""
MOST_US = 30.0
"""Microseconds a step, p50; the issue's limit on a machine that does nothing else."""


def change(states: list[SessionState]) -> None:
    for state in states:
        state.n += 1
        state.calls += 1


@pytest.fixture
def sessions(benchmark: Any, pytestconfig: pytest.Config) -> int:
    """
    How many idle sessions are stored: fewer in the short run of `dev.py bench`, and only some if nothing is timed.
    """
    if not benchmark.enabled:
        return 1_000
    return SESSIONS if float(pytestconfig.getoption("benchmark_max_time")) >= 1 else SESSIONS // 10


@pytest.fixture
def bare(tmp_path: Path) -> Any:
    """
    A transaction of a row as long, by hand.
    """
    database = sqlite3.connect(tmp_path / "bare.db", isolation_level=None)
    state = SessionState()
    live(state)
    row = pack(state)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE states (key TEXT PRIMARY KEY, state BLOB)")
    database.execute("INSERT INTO states VALUES ('a', ?)", (row,))
    execute = database.cursor().execute
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        execute("BEGIN IMMEDIATE")
        execute("SELECT state FROM states WHERE key = ?", ("a",)).fetchone()
        execute("UPDATE states SET state = ? WHERE key = ?", (row[:-8] + count.to_bytes(8, "little"), "a"))
        execute("COMMIT")

    yield step
    database.close()


def times(step: Callable[[], object], number: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(number):
            step()

    return run


def spread(step: Callable[[], object], enabled: bool) -> str:
    """
    What single steps take, one after the other: what else is on the disk makes some of them wait.
    """
    taken = []
    for _ in range(SINGLE if enabled else 10):
        start = time.perf_counter()
        step()
        taken.append((time.perf_counter() - start) * 1e6)
    taken.sort()
    p50, p99 = (taken[len(taken) * part // 100] for part in (50, 99))
    return f"single steps: p50 {p50:.0f} us, p99 {p99:.0f} us"


def test_bare_sqlite_transaction(measure: Measure, benchmark: Any, bare: Callable[[], None]) -> None:
    measure(times(bare, EACH), EACH, note=spread(bare, benchmark.enabled))


@pytest.mark.parametrize("keys", [("session",), ("session", "/user/u1", "/tenant/acme")], ids=["session", "two scopes"])
def test_step_in_sqlite(measure: Measure, benchmark: Any, tmp_path: Path, keys: tuple[str, ...]) -> None:
    with SqliteStore(tmp_path / "state.db") as store:
        store.update(["session"], lambda states: live(states[0]))
        said = spread(lambda: store.update(keys, change), benchmark.enabled)
        measure(
            times(lambda: store.update(keys, change), EACH), EACH, note=f"{said} (issue: p50 {MOST_US:g} us, one key)"
        )


def test_bare_round_trip_to_redis(measure: Measure, benchmark: Any) -> None:
    with shared().client() as client:
        client.ping()
        measure(times(client.ping, EACH), EACH, note=spread(client.ping, benchmark.enabled))


@pytest.mark.parametrize("keys", [("session",), ("session", "/user/u1", "/tenant/acme")], ids=["session", "two scopes"])
def test_step_in_redis(measure: Measure, benchmark: Any, keys: tuple[str, ...]) -> None:
    with in_redis() as store:
        store.update(["session"], lambda states: live(states[0]))
        said = spread(lambda: store.update(keys, change), benchmark.enabled)
        measure(times(lambda: store.update(keys, change), EACH), EACH, note=said)


@pytest.mark.parametrize("processes", [1, 4, 16])
def test_processes_that_share_a_scope_in_redis(benchmark: Any, processes: int) -> None:
    """
    Steps of all together, and how even their shares are: without a pause between two of them.
    """
    seconds = 5.0 if benchmark.enabled else 0.05
    with in_redis() as store:
        counts: list[int] = []

        def run() -> None:
            started = workers(store, processes if benchmark.enabled else 1, seconds)
            counts[:] = [int(one.communicate()[0]) for one in started]

        benchmark.pedantic(run, rounds=1)
        assert store.update(["/user/u1"], lambda states: states[0].calls) == sum(counts)
    share = min(counts) / max(counts)
    benchmark.extra_info["note"] = f"{sum(counts) / seconds:,.0f} steps a second, share min/max {share:.2f}"


def test_step_in_memory(measure: Measure) -> None:
    store = MemoryStore()
    measure(times(lambda: store.update(("session",), change), EACH), EACH)


@pytest.mark.parametrize("kept", ["memory", "sqlite", "redis"])
def test_call_with_its_state(measure: Measure, tmp_path: Path, default: Policy, kept: str) -> None:
    makes: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "state.db"),
        "redis": in_redis,
    }
    store = makes[kept]()
    session, n = default.session("s", store=store), 0

    def call() -> None:
        nonlocal n
        n += 1
        session.call("search", {"n": n}, lambda *_: "found")

    measure(times(call, EACH), EACH)
    if isinstance(store, SqliteStore | RedisStore):
        store.close()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_idle_sessions_in_memory(benchmark: Any, sessions: int) -> None:
    store = MemoryStore()

    def fill() -> int:
        gc.collect()
        before = resident()
        for number in range(sessions):
            store.update((f"session-{number}",), lambda states: live(states[0]))
        return resident() - before

    size = benchmark.pedantic(fill, rounds=1)
    benchmark.extra_info["note"] = f"{size // sessions:,} bytes of resident memory each of {sessions:,} sessions"


def test_idle_sessions_in_sqlite(benchmark: Any, sessions: int, tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    def step(states: list[SessionState]) -> None:
        for state in states:
            live(state)

    def fill() -> int:
        gc.collect()
        before = resident()
        with SqliteStore(path) as store:
            for number in range(0, sessions, BATCH):
                store.update([f"session-{n}" for n in range(number, number + BATCH)], step)
            return resident() - before

    memory = benchmark.pedantic(fill, rounds=1)
    disk = path.stat().st_size
    note = (
        f"{disk // sessions:,} bytes on disk each of {sessions:,} sessions; {memory / 2**20:.1f} MiB of memory in all"
    )
    benchmark.extra_info["note"] = note


def test_idle_sessions_in_redis(benchmark: Any, sessions: int) -> None:
    before = shared().ask("INFO", "memory")["used_memory"]

    def step(states: list[SessionState]) -> None:
        for state in states:
            live(state)

    def fill() -> None:
        with in_redis() as store:
            for number in range(0, sessions, BATCH):
                store.update([f"session-{n}" for n in range(number, number + BATCH)], step)

    benchmark.pedantic(fill, rounds=1)
    size = shared().ask("INFO", "memory")["used_memory"] - before
    benchmark.extra_info["note"] = f"{size // sessions:,} bytes of the server's memory each of {sessions:,} sessions"
    shared().ask("FLUSHALL")


# Memory

WINDOW = 20
TOOLS = [f"tool_{n:02d}_".ljust(24, "x") for n in range(10)]
IDLE = 10_000
NOW = 1_800_000_000_000
MOST_PACKED = 2_560
"""Bytes, as JSON."""


def live(state: SessionState) -> None:
    """
    A session's calls until its window is full, each of a signature, a sketch and with a result of its own.
    """
    plan = Chain([]).plan("read")
    for n in range(WINDOW):
        touch(state, NOW + n * 1_000)
        call = ToolCall(TOOLS[n % len(TOOLS)], None, f"call_{n}", None, (n - 10) << 59 | n, sketch=n - 10 << 50 | 1)
        pending = admit(state, call, plan, WINDOW, claims=True)
        settle(state, pending, Outcome("found"))
        pending.entry.result_hash, pending.entry.steady = -(n << 58) | n, n + 1 << 24


def test_packed_size_of_an_idle_session(benchmark: Any) -> None:
    state = SessionState()
    live(state)
    packed = benchmark.pedantic(pack, args=(state,), rounds=50, iterations=20)
    assert len(packed) <= MOST_PACKED
    benchmark.extra_info["note"] = f"{len(packed)} bytes (at most {MOST_PACKED})"


def test_resident_bytes_of_an_idle_session(benchmark: Any) -> None:
    sessions = IDLE if benchmark.enabled else 100
    store = MemoryStore()

    def fill() -> int:
        gc.collect()
        tracemalloc.start()
        for number in range(sessions):
            store.update((f"session-{number}",), lambda states: live(states[0]))
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size

    size = benchmark.pedantic(fill, rounds=1)
    assert len(store) == sessions
    note = f"{size // sessions:,} bytes each of {sessions:,} sessions, of which {LIVE:,} are kept unpacked"
    benchmark.extra_info["note"] = note
