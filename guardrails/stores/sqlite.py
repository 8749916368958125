"""
Sessions in a file of SQLite, shared by all processes of one machine.
"""

import os
import sqlite3
import time

from collections.abc import Callable, Iterator
from contextlib import suppress
from os import PathLike
from typing import Final, Literal

from guardrails.core.values.errors import StoreError

from . import When
from .persistence import BATCH, FORKED, LIVE, Slot, SqlStore
from .places import make_private


APPLICATION_ID: Final = 0x54434752
"""`TCGR` in the file's header: what `file` and others may know it by."""
VERSION: Final = 1
"""Of the tables; the states in them say their own."""
FORK_WAIT_S: Final = 10.0
"""How long a fork waits for an update that is under way: SQLite cannot be taken along in one."""

_give_way: Final = getattr(os, "sched_yield", lambda: None)
Synchronous = Literal["normal", "full"]

_TABLE: Final = """
CREATE TABLE states (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at_ms INTEGER NOT NULL, state BLOB NOT NULL)
"""
_SELECT: Final = "SELECT state FROM states WHERE key = ?"
_WRITE: Final = """
INSERT INTO states (key, state, at_ms) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET state = excluded.state, at_ms = excluded.at_ms
"""
_WAL_BYTES: Final = 16 << 20
"""What the write-ahead log is cut to after a checkpoint."""
_WAL_PAGES: Final = 4_000
"""How long it grows before one, which waits for the disk: about as many steps, each of which writes a page or two."""
KINDS: Final = {
    "busy": "is locked",
    "read-only": "readonly database|permission denied",
    "folder": "unable to open",
    "damaged": "not a database|malformed",
    "disk": "disk I/O",
    "full": "is full",
}


class SqliteStore(SqlStore):
    """
    States in the file *path*, which is made if it is missing. Safe in any number of threads and processes.

    One `update` is one transaction (`BEGIN IMMEDIATE`, write-ahead log): once it returns, kill -9 forgets nothing of
    it. A power failure may forget the latest transactions unless *synchronous* is `full`. It waits up to *timeout*
    seconds for other processes, then raises StoreError. It also raises StoreError if the file cannot be opened, read or
    written. Nothing is changed then.

    The file must be on a local disk. It grows with the number of sessions: see `prune`, which goes by *clock*.
    """

    _places = 1
    _pause_s = 0.000_05
    """The pauses of SQLite itself grow to a tenth of a second, so that who has just written writes again, and others starve."""
    _errors = sqlite3.Error
    _kinds = KINDS

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        timeout: float = 5.0,
        synchronous: Synchronous = "normal",
        live: int = LIVE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        given = os.fspath(path)
        if not isinstance(given, str) or given in ("", ":memory:") or "\0" in given:
            raise StoreError(f"`{given!r}` is no path of a file; states in memory are kept by `MemoryStore`")
        if synchronous not in ("normal", "full"):
            raise StoreError(f"unknown synchronous `{synchronous}`: use normal or full")
        # As of now: the working directory may change, and the file is opened again after a fork.
        self.path = os.path.abspath(given)  # noqa: PTH100
        self._synchronous: Synchronous = synchronous
        self._clock = clock
        super().__init__(self.path, timeout, live)
        self._rows("SELECT 1")

    # No key holds half a surrogate pair, which SQLite does not take either.
    @staticmethod
    def _name(key: str) -> str:
        return key.encode("utf-8", "replace").decode()

    def _connect(self) -> sqlite3.Connection:
        if self._left:
            raise StoreError(FORKED.format(self.path))
        # It waits here, by pauses of its own.
        return connect(self.path, 0, self._synchronous)

    def _begun(self, connection: sqlite3.Connection, names: list[str]) -> dict[str, bytes | None]:
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        return {name: row[0] for name in names for row in execute(_SELECT, (name,))}

    def _commit(self, connection: sqlite3.Connection, rows: list[tuple[str, bytes]], slot: Slot) -> None:
        for name, packed in rows:
            connection.execute(_WRITE, (name, packed, self._now_ms()))
        connection.execute("COMMIT")
        # Else who has just had the file has it again, until its time on the processor is up.
        _give_way()

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        yield from super()._drop(idle_ms, prefix, scopes=scopes)
        for _ in range(0, self._rows("PRAGMA freelist_count")[0][0], BATCH):
            # A statement that gives back a page at each step, which `execute` takes only one of.
            self._ask(lambda slot: self._connection(slot).executescript(f"PRAGMA incremental_vacuum({BATCH})"))

    def _at_fork(self, when: When) -> None:
        (slot,) = self._slots
        if when == "before":
            # A connection and its locks must not be in two processes, so none is open while one becomes two.
            self._waiting = slot.lock.acquire(timeout=FORK_WAIT_S)
            if self._waiting and not slot.busy:
                self._let_go(slot)
        elif when == "child":
            super()._at_fork(when)
        elif self._waiting:
            slot.lock.release()


def connect(path: str, timeout_s: float, synchronous: Synchronous) -> sqlite3.Connection:
    """
    Returns a connection to the store in the file *path*, which is made for its owner only (0600) if it is not there.

    Raises StoreError if the file is another program's or of a newer version, sqlite3.Error if that fails.
    """
    # SQLite says better why a file cannot be made.
    with suppress(OSError):
        make_private(path)
    database = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        _set_up(database.execute, path, synchronous)
    except BaseException:
        database.close()
        raise
    return database


def _set_up(execute: Callable[[str], sqlite3.Cursor], path: str, synchronous: Synchronous) -> None:
    _check(execute, path)
    execute("PRAGMA trusted_schema = OFF")
    # Only a file that is still empty takes it, and the log would end that.
    execute("PRAGMA auto_vacuum = INCREMENTAL")
    (mode,) = execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"`{path}` cannot have a write-ahead log (it says `{mode}`): use a file on a local disk")
    execute(f"PRAGMA synchronous = {synchronous}")
    execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
    # Make the table if it is missing, and find out whether the file can be written.
    execute("BEGIN IMMEDIATE")
    if not _check(execute, path):
        execute(_TABLE)
        execute(f"PRAGMA application_id = {APPLICATION_ID}")
        execute(f"PRAGMA user_version = {VERSION}")
    execute("COMMIT")


def _check(execute: Callable[[str], sqlite3.Cursor], path: str) -> bool:
    """
    Returns whether the file is ours; an empty one is nobody's. Raises StoreError for one of another program.
    """
    # In one statement, or another process that makes the file right now would be seen half-way.
    (application, version, tables), *_ = execute(
        "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id a, pragma_user_version v"
    )
    if application == APPLICATION_ID and version > VERSION:
        raise StoreError(
            f"`{path}` was written by a newer version of this library (tables of version {version}, this one reads "
            f"{VERSION}): upgrade, or use another file"
        )
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError(f"`{path}` is a database of another program: use another file")
    return bool(application)
