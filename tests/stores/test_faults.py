"""
Stores on servers that are gone, are not fit, or let nobody in, whichever server it is; files that are damaged, full or another's.
"""

import os
import sqlite3
import threading

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, SqliteStore
from guardrails.core.state import SessionState
from guardrails.errors import StoreError
from guardrails.stores.places import store_at
from guardrails.stores.postgres import PostgresStore
from guardrails.stores.sqlite import APPLICATION_ID
from tests.children import PATIENCE_S, until
from tests.stores.servers import Postgres, Server, in_postgres, shared_postgres
from tests.stores.test_contract import ONE, in_a_file, look, second
from tests.tables import table


@pytest.fixture(params=["redis", "postgres"])
def server(request: pytest.FixtureRequest) -> Iterator[Server | Postgres]:
    """
    A server that has on its disk what it answered.
    """
    made = Server("--appendonly", "yes", "--appendfsync", "always") if request.param == "redis" else Postgres()
    yield made
    made.remove()


@pytest.mark.system
def test_a_crash_forgets_nothing_and_calls_are_refused_until_the_server_is_back(server: Server | Postgres) -> None:
    policy = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=9)]})

    def dies(*_: object) -> str:
        server.kill()
        return "done"

    with store_at(server.url, timeout=3) as store, store_at(server.url, timeout=PATIENCE_S) as patient:
        session = policy.session("s", scopes={"user": "u1"}, store=store)
        settled = session.call("t", {"n": 1}, dies)
        assert (settled.ok, settled.value) == (True, "done"), "a result is not lost"
        assert session.call("t", {"n": 2}, lambda *_: "ran").code == "store.error"
        with pytest.raises(StoreError, match="cannot be reached") as raised:
            store_at(server.url.replace("//", "//me:hidden@").replace("test@", ""), timeout=0.1)
        starting = threading.Timer(0.1, server.start)
        starting.start()
        assert patient.update(["s", "/user/u1"], look) == [1, 1], "a restart is waited for"
        starting.join()
        assert session.call("t", {"n": 3}, lambda *_: "ok").ok
    assert "hidden" not in f"{raised.value} {raised.value.__cause__}"


@pytest.mark.system
def test_a_redis_that_could_drop_states_is_refused_and_a_full_one_keeps_what_was_admitted() -> None:
    server = Server("--requirepass", "hidden")
    client: Any = server.client(password="hidden")
    for given in ("", ":wrong@"):
        with pytest.raises(StoreError, match="did not let this user in: correct user and password") as error:
            store_at(server.url.replace("//", f"//{given}"))
        assert "wrong" not in str(error.value)
    place = server.url.replace("//", "//:hidden@")
    with store_at(place) as store:
        assert "hidden" not in f"{store!r} {store.place}"
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(StoreError, match=r"may drop states .*maxmemory-policy `allkeys-lru`.*`noeviction`"):
            store_at(place)
        client.config_set("maxmemory-policy", "noeviction")
        store.update(["a", "b"], ONE)
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreError, match="is full: free some space, or `prune` sessions that are over"):
            store.update(["a", "b"], ONE)
        store.forget("b")
        client.config_set("maxmemory", "0")
        assert store.update(["a", "b"], ONE) == [2, 1]
    client.close()
    server.remove()


@pytest.mark.system
def test_a_replica_of_redis_is_refused_until_it_takes_writes() -> None:
    primary = Server()
    replica = Server("--replicaof", "127.0.0.1", str(primary.port))
    until(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up")
    with pytest.raises(StoreError, match="is a replica, which takes no writes: give the address of the primary"):
        store_at(replica.url, timeout=3)
    replica.ask("CONFIG", "SET", "replica-read-only", "no")
    with pytest.raises(StoreError, match="is a replica whose writes are lost"):
        store_at(replica.url)
    replica.ask("REPLICAOF", "NO", "ONE")
    with store_at(replica.url) as store:
        assert store.update(["s"], ONE) == [1]
    replica.remove()
    primary.remove()


@pytest.mark.system
def test_a_table_of_another_program_stays_and_ours_is_named_by_a_namespace() -> None:
    server = shared_postgres()
    server.ask("CREATE TABLE theirs (name text)")
    store = PostgresStore(server.url, table="theirs")
    with store, pytest.raises(StoreError, match="use another file, `table` or `namespace`"):
        store.update(["s"], ONE)
    assert server.ask("SELECT count(*) FROM theirs") == [(0,)]
    with pytest.raises(StoreError, match="no name of a table"):
        PostgresStore(server.url, table="a; DROP TABLE theirs")
    with store_at(server.url, namespace="mine") as own:
        own.update(["s"], ONE)
        assert server.ask("SELECT key FROM mine_states") == [(b"s",)]


@pytest.mark.system
@pytest.mark.parametrize("make", [in_a_file, in_postgres])
def test_what_others_lock_for_too_long_is_an_error_and_works_again_afterwards(make: Any) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(states: list[SessionState]) -> bool:
        inside.set()
        return leave.wait(PATIENCE_S)

    with make() as other, second(other, timeout=1) as store:
        store.update(["s"], ONE)
        thread = threading.Thread(target=other.update, args=(["s"], hold))
        thread.start()
        inside.wait(PATIENCE_S)
        with pytest.raises(StoreError, match="was locked by others"):
            store.update(["s"], ONE)
        leave.set()
        thread.join()
        assert store.update(["s"], ONE) == [2]


# Files of SQLite


def raw(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return [database.execute(statement).fetchall() for statement in statements]


def wide(states: list[SessionState]) -> None:
    states[0].calls += 1
    states[0].own = {f"meter {'x' * 500} {n}": n for n in range(60)}


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@table("umask", [0, 0o022, 0o077])
def test_a_new_file_and_what_stands_beside_it_are_the_owners_alone(tmp_path: Path, umask: int) -> None:
    folder, before = tmp_path / f"{umask}", os.umask(umask)
    folder.mkdir(mode=0o700)
    try:
        with SqliteStore(folder / "state.db") as store:
            store.update(["s"], ONE)
            modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm"), 0o600)


OURS = f"PRAGMA application_id = {APPLICATION_ID}"
FILES: dict[str, Callable[[Path], object]] = {
    "is a database of another program: use another file": lambda path: raw(path, "CREATE TABLE notes (text)"),
    "is a database of another program": lambda path: raw(
        path, "PRAGMA application_id = 7", "CREATE TABLE t (a)", "DROP TABLE t"
    ),
    "newer version of this library .tables of version 2, this one reads 1.: upgrade": lambda path: raw(
        path, OURS, "PRAGMA user_version = 2"
    ),
    "is damaged, or no database": lambda path: path.write_text("# Notes\n" * 200),
    "cannot be opened": lambda path: path.mkdir(),
    "cannot be opened: its folder must be there": lambda path: path.parent.rmdir(),
}


@table(("reason", "write"), FILES.items())
def test_a_file_that_is_not_ours_is_refused_and_left_as_it_was(
    reason: str, write: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / os.urandom(4).hex() / "state.db"
    path.parent.mkdir()
    write(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=reason):
        SqliteStore(path)
    assert (path.read_bytes() if path.is_file() else None) == before
    for given in ("", ":memory:", "a\0b"):
        with pytest.raises(StoreError, match="no path of a file"):
            SqliteStore(given)


def test_a_damaged_page_is_an_error_and_not_a_new_session(tmp_path: Path) -> None:
    store, path = SqliteStore(tmp_path / "state.db"), tmp_path / "state.db"
    for n in range(50):
        store.update([f"session-{n}"], ONE)
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with pytest.raises(StoreError, match="is damaged, or no database: put a copy of it back, or move it away"):
        store.update(["session-7"], ONE)


def test_a_full_disk_refuses_what_is_new_and_keeps_what_was_there(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.update(["a"], ONE)
    database: Any = store._slots[0].link
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages + 2}")
    full = "is full: free some space, or `prune` sessions that are over; what was admitted before"
    with pytest.raises(StoreError, match=full):
        store.update(["a", "b"], wide)
    assert store.update(["a"], lambda states: (states[0].calls, states[0].own)) == (1, {})
    database.execute("PRAGMA max_page_count = 100000")
    store.update(["a"], wide)
    assert store.update(["a"], ONE) == [3]
