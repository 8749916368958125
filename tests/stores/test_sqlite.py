"""
Sessions in a file: what only this store does, and what faults do to it.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, SessionState, SqliteStore, StoreError
from guardrails.core.packing import VERSION
from guardrails.core.values.errors import StateUnreadable
from guardrails.stores.sqlite import APPLICATION_ID
from tests.tables import table


def spend(states: list[SessionState]) -> list[int]:
    for state in states:
        state.calls += 1
    return [state.calls for state in states]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path, timeout=0.2) as made:
        yield made


def raw(path: Path, *statements: str) -> list[Any]:
    database = sqlite3.connect(path, isolation_level=None)
    try:
        return [database.execute(statement).fetchall() for statement in statements]
    finally:
        database.close()


def python(code: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_new_file_and_what_stands_beside_it_are_the_owners_alone(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with SqliteStore(path) as store:
            store.update(["s"], spend)
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm"), 0o600)


def test_what_one_store_changed_another_finds_though_it_had_the_state_before(store: SqliteStore, path: Path) -> None:
    with SqliteStore(path) as other:
        counts = [where.update(["a", "b"], spend) for where in (store, other, store, store, other)]
    assert counts == [[n, n] for n in range(1, 6)]


@pytest.mark.parametrize("given", ["", ":memory:", "a\0b"])
def test_what_is_no_path_of_a_file_is_refused(given: str) -> None:
    with pytest.raises(StoreError, match="no path of a file"):
        SqliteStore(given)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "of another program": (
        lambda path: raw(path, "CREATE TABLE notes (text)"),
        "is a database of another program: use another file",
    ),
    "of another program, with no table yet": (
        lambda path: raw(path, "PRAGMA application_id = 7", "CREATE TABLE t (a)", "DROP TABLE t"),
        "is a database of another program",
    ),
    "of a newer version": (
        lambda path: raw(path, f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 2"),
        "newer version of this library .tables of version 2, this one reads 1.: upgrade",
    ),
    "no database": (lambda path: path.write_text("# Notes\n" * 200), "is damaged, or no database"),
    "a folder": (lambda path: path.mkdir(), "cannot be opened"),
    "in a folder that is not there": (lambda path: path.parent.rmdir(), "cannot be opened: its folder must be there"),
}


@pytest.mark.parametrize("made", FILES.values(), ids=FILES.keys())
def test_a_file_that_is_not_ours_is_refused_and_left_as_it_was(
    made: tuple[Callable[[Path], object], str], path: Path
) -> None:
    write, said = made
    write(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=said):
        SqliteStore(path)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_damaged_page_is_an_error_and_not_a_new_session(store: SqliteStore, path: Path) -> None:
    for n in range(50):
        store.update([f"session-{n}"], spend)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged, or no database: put a copy of it back, or move it away"):
        store.update(["session-7"], spend)


@pytest.mark.parametrize("value", ["x''", "x'0700'", "'text'", "5", "zeroblob(30)"])
def test_a_damaged_state_is_an_error_that_names_it_and_harms_no_other(
    value: str, store: SqliteStore, path: Path
) -> None:
    for key in ("a", "b"):
        store.update([key], spend)
    raw(path, f"UPDATE states SET state = {value} WHERE key = 'a'")
    with pytest.raises(StoreError, match=r"the state of `a` in the store .* cannot be used: .*; `forget` it"):
        store.update(["b", "a"], spend)
    assert store.update(["b"], spend) == [2]
    store.forget("a")
    assert store.update(["a"], spend) == [1]


@table(
    ("state", "said"),
    [
        (
            f"x'{VERSION + 1:02x}000000'",
            f"is of version {VERSION + 1}, and this version of the library reads {VERSION}",
        ),
        ("x'01000000'", f"is of version 1, and this version of the library reads {VERSION}"),
        ("x''", "cannot be read"),
    ],
)
@table("on_error", ["deny", "allow"])
@table(("key", "whose"), [("s", "`s`"), ("/user/u1", "the scope `user` of `u1`")])
def test_a_state_that_cannot_be_read_never_lets_a_call_run_without_limits(
    key: str, whose: str, on_error: Any, state: str, said: str, path: Path, clock: Any
) -> None:
    policy = Policy([Budget(max_calls=3)], scopes={"user": [Budget(max_calls=5)]}, on_error=on_error)
    with SqliteStore(path) as store:
        store.forget("s")
        store.forget("/user/u1")
        session = policy.session("s", store=store, clock=clock, scopes={"user": "u1"})
        assert session.call("t", {"n": 0}, lambda *_: "ran").ok
        raw(path, f"UPDATE states SET state = {state} WHERE key = '{key}'")
        refused = session.call("t", {"n": 1}, lambda *_: "ran")
        assert (refused.code, refused.status) == ("store.unreadable", "denied")
        assert f"the state of {whose} cannot be read" in (refused.message or "")
        assert str(path) not in refused.to_json()
        told = f"the state of {whose} .*{said}.*`forget` it only to start it afresh"
        for ask in (lambda: session.exhausted, lambda: session.charge(model="m", cost_usd=1)):
            with pytest.raises(StateUnreadable, match=told):
                ask()
        store.forget(key)
        assert session.call("t", {"n": 1}, lambda *_: "ran").ok


def test_a_result_is_not_lost_where_its_state_cannot_be_read_any_more(path: Path, clock: Any) -> None:
    with SqliteStore(path) as store:
        session = Policy([Budget(max_calls=3)], on_error="allow").session("s", store=store, clock=clock)

        def run(*_: Any) -> str:
            raw(path, "UPDATE states SET state = x'05000000'")
            return "precious"

        assert session.call("t", {}, run).value == "precious"


def test_a_locked_file_is_waited_for_and_then_an_error_and_works_again_afterwards(
    store: SqliteStore, path: Path
) -> None:
    store.update(["a"], spend)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    for ask in (lambda: store.update(["a"], spend), lambda: store.forget("a"), lambda: SqliteStore(path, timeout=0.1)):
        with pytest.raises(StoreError, match=r"was locked by others for 0\.[12] s: end what holds it"):
            ask()
    assert 0.4 < time.monotonic() - began < 5
    other.close()
    assert store.update(["a"], spend) == [2]


def test_a_full_disk_refuses_what_is_new_and_keeps_what_was_there(store: SqliteStore) -> None:
    store.update(["a"], spend)
    database: Any = store._slots[0].link
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages + 2}")

    def fill(states: list[SessionState]) -> None:
        states[0].calls += 1
        states[0].own = {f"meter {'x' * 500} {n}": n for n in range(60)}

    with pytest.raises(
        StoreError, match="is full: free some space, or `prune` sessions that are over; what was admitted before"
    ):
        store.update(["a", "b"], fill)
    assert store.update(["a"], lambda states: (states[0].calls, states[0].own)) == (1, {})
    database.execute("PRAGMA max_page_count = 100000")
    store.update(["a"], fill)
    assert store.update(["a"], spend) == [3]


@pytest.mark.system
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users here")
def test_a_file_or_folder_that_may_not_be_written_is_refused_in_plain_words() -> None:
    code = """
import os, shutil, sqlite3, sys, tempfile
from guardrails import SqliteStore, StoreError
import guardrails.stores.sqlite
folder = tempfile.mkdtemp()
SqliteStore(folder + "/state.db").close()
os.chmod(folder + "/state.db", 0o444)
os.chmod(folder, 0o555)
if os.geteuid() == 0:
    os.seteuid(65534)
for name in ("state.db", "new.db"):
    try:
        SqliteStore(os.path.join(folder, name))
    except StoreError as error:
        print(error)
os.seteuid(os.getuid())
os.chmod(folder, 0o755)
shutil.rmtree(folder)
"""
    out, _ = python(code).communicate(timeout=30)
    first, second = out.splitlines()
    assert "state.db` is read-only: give this process the right to write it and its folder" in first
    assert "new.db` cannot be opened: its folder must be there, and this process must be allowed to write it" in second


def test_old_sessions_are_pruned_and_the_file_shrinks(path: Path, clock: Any) -> None:
    store = SqliteStore(path, clock=clock)

    def grow(states: list[SessionState]) -> None:
        states[0].own = {f"meter {'x' * 100} {n}": n for n in range(30)}

    for n in range(1_200):
        store.update([f"old-{n}"], grow)
    store.update(["/user/u1"], spend)
    clock.advance(86_400)
    store.update(["young"], spend)
    store.update(["old-7"], spend)
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.stat().st_size
    assert store.prune("1d") == 0
    clock.advance(3_600)
    assert store.prune("1d") == 1_199
    assert (store.update(["old-7"], spend), store.update(["old-8"], spend), len(store)) == ([2], [1], 4)
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size < before / 10
    assert store.update(["/user/u1"], spend) == [2]
    clock.advance(90_000)
    assert store.prune(86_400, scopes=True) == 4
    assert store.update(["/user/u1"], spend) == [1]
    with pytest.raises(ValueError, match="not a duration"):
        store.prune("soon")
    store.close()


COUNTING = """
import sys
from guardrails import SqliteStore

def spend(states):
    states[0].calls += 1
    return states[0].calls

store = SqliteStore(sys.argv[1], timeout=30)
while True:
    print(store.update(["a"], spend), flush=True)
"""


@pytest.mark.system
def test_what_was_committed_before_kill_9_is_there_afterwards(path: Path) -> None:
    """
    MISSION: nothing admitted is forgotten after its commit.
    """
    SqliteStore(path).close()
    acknowledged = 0
    for round_ in range(3):
        with python(COUNTING, path) as process:
            assert process.stdout is not None
            for _ in range(40 + 30 * round_):
                acknowledged = int(process.stdout.readline())
            process.kill()
            # What it said after we looked was committed too.
            rest = [int(line) for line in process.stdout.read().split()]
        acknowledged = max([acknowledged, *rest])
        with SqliteStore(path) as store:
            found = store.update(["a"], lambda states: states[0].calls)
        assert acknowledged <= found <= acknowledged + 1
        acknowledged = found


@pytest.mark.system
def test_a_claim_of_a_process_that_died_expires_as_in_memory(path: Path, clock: Any) -> None:
    code = """
import os, signal, sys
from guardrails import Budget, Policy, SqliteStore, Tool
policy = Policy([Budget(max_calls=9)], tools=[Tool(name="pay", cost_usd=0.5)])
session = policy.session("s", store=SqliteStore(sys.argv[1]), clock=lambda: float(sys.argv[2]))
session.call("pay", {"n": 1}, lambda *_: os.kill(os.getpid(), signal.SIGKILL), id="call_0")
"""
    process = python(code, path, clock.now)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    policy = Policy([Budget(max_calls=9)])
    with SqliteStore(path) as store:
        session = policy.session("s", store=store, clock=clock)
        assert (session.ledger.progress["calls_used"], session.ledger.cost_usd) == (1, 0)
        again = session.call("pay", {"n": 1}, lambda *_: "paid twice", id="call_0")
        assert again.code == "call.in_flight"
        clock.advance(602)
        assert session.call("pay", {"n": 1}, lambda *_: "after all", id="call_0").value == "after all"
        # The estimate stays charged.
        assert (session.ledger.progress["calls_used"], session.ledger.cost_usd) == (2, 0.5)
