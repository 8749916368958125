"""
Sessions in a file: what only this store does, and what faults do to it.
"""

import os
import sqlite3

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guardrails import SqliteStore
from guardrails.core.guards.base import SessionState
from guardrails.errors import StoreError
from guardrails.stores.sqlite import APPLICATION_ID
from tests.stores.test_contract import spend
from tests.tables import table


ONE = spend(1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path, timeout=0.2) as made:
        yield made


def raw(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return [database.execute(statement).fetchall() for statement in statements]


def wide(states: list[SessionState]) -> None:
    states[0].calls += 1
    states[0].own = {f"meter {'x' * 500} {n}": n for n in range(60)}


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@table("umask", [0, 0o022, 0o077])
def test_a_new_file_and_what_stands_beside_it_are_the_owners_alone(path: Path, umask: int) -> None:
    folder, before = path.parent / f"{umask}", os.umask(umask)
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


def test_a_damaged_page_is_an_error_and_not_a_new_session(store: SqliteStore, path: Path) -> None:
    for n in range(50):
        store.update([f"session-{n}"], ONE)
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with pytest.raises(StoreError, match="is damaged, or no database: put a copy of it back, or move it away"):
        store.update(["session-7"], ONE)


def test_a_full_disk_refuses_what_is_new_and_keeps_what_was_there(store: SqliteStore) -> None:
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
