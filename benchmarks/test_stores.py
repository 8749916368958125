"""
What a step costs in a file of SQLite and in a server of Redis, and what 100,000 idle sessions take there and in memory.

A step's yardstick of its own is a bare transaction that reads and writes a row as long by Python's `sqlite3`, or a bare round trip
to the server by the package `redis`.
"""

import gc
import os
import sqlite3

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure, times
from guardrails import MemoryStore, Policy, SqliteStore
from guardrails.core.chain import Chain
from guardrails.core.packing import pack
from guardrails.core.state import SessionState, admit, settle, touch
from guardrails.core.values.types import Outcome, ToolCall
from tests.stores.redis_server import in_redis, shared


BATCH = 1_000
EACH = 10
"""Steps timed at once: so few that a checkpoint, which waits for the disk, is in few of the rounds."""
KEYS = ("session", "/user/u1", "/tenant/acme")


def live(states: list[SessionState]) -> None:
    """
    Calls until the window of each is full, each of a signature, a sketch and with a result of its own.
    """
    plan = Chain([]).plan("read")
    for state in states:
        for n in range(20):
            touch(state, 1_800_000_000_000 + n * 1_000)
            call = ToolCall(f"tool_{n % 10:02d}_".ljust(24, "x"), None, f"call_{n}", None, (n - 10) << 59 | n, sketch=n)
            pending = admit(state, call, plan, 20, claims=True)
            settle(state, pending, Outcome("found"))
            pending.entry.result_hash, pending.entry.steady = -(n << 58) | n, n + 1 << 24


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    makes: dict[str, Callable[[], Any]] = {"memory": MemoryStore, "redis": in_redis}
    made = makes.get(request.param, lambda: SqliteStore(tmp_path / "state.db"))()
    yield made
    if not isinstance(made, MemoryStore):
        made.close()


def test_bare_sqlite_transaction(measure: Measure, tmp_path: Path) -> None:
    state = SessionState()
    live([state])
    database = sqlite3.connect(tmp_path / "bare.db", isolation_level=None)
    for text in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "CREATE TABLE states (state BLOB)"):
        database.execute(text)
    database.execute("INSERT INTO states VALUES (?)", (pack(state),))

    def step() -> None:
        database.execute("BEGIN IMMEDIATE")
        (row,) = database.execute("SELECT state FROM states").fetchone()
        database.execute("UPDATE states SET state = ?", (row[1:] + row[:1],))
        database.execute("COMMIT")

    measure(times(step, EACH), EACH)
    database.close()


def test_bare_round_trip_to_redis(measure: Measure) -> None:
    with shared().client() as client:
        measure(times(client.ping, EACH), EACH)


@pytest.mark.parametrize("keys", [KEYS[:1], KEYS], ids=["session", "two scopes"])
def test_step(measure: Measure, store: Any, keys: tuple[str, ...]) -> None:
    def change(states: list[SessionState]) -> None:
        for state in states:
            state.calls += 1

    store.update(keys[:1], live)
    measure(times(lambda: store.update(keys, change), EACH), EACH)


def test_call_with_its_state(measure: Measure, default: Policy, store: Any) -> None:
    session, numbers = default.session("s", store=store), iter(range(10**9))
    measure(times(lambda: session.call("search", {"n": next(numbers)}, lambda *_: "found"), EACH), EACH)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_idle_sessions(benchmark: Any, pytestconfig: pytest.Config, store: Any, tmp_path: Path) -> None:
    """
    Fewer in the short run of `dev.py bench`, and only some if nothing is timed.
    """
    long = float(pytestconfig.getoption("benchmark_max_time")) >= 1
    sessions = BATCH if not benchmark.enabled else 100_000 if long else 10_000

    def fill() -> int:
        gc.collect()
        before = resident()
        for number in range(0, sessions, BATCH):
            store.update([f"session-{n}" for n in range(number, number + BATCH)], live)
        return resident() - before

    memory = benchmark.pedantic(fill, rounds=1)
    disk = sum(file.stat().st_size for file in tmp_path.iterdir())
    note = f"{memory // sessions:,} bytes of resident memory and {disk // sessions:,} on disk"
    benchmark.extra_info["note"] = f"{note} each of {sessions:,} sessions"
