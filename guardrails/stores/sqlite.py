"""
Sessions in a file of SQLite, shared by all processes of one machine.
"""

import os
import sqlite3
import time

from collections.abc import Callable, Iterator
from contextlib import suppress
from os import PathLike
from typing import Any, Final, Literal

from guardrails.core.values.errors import StoreError

from . import persistence
from .base import When
from .folders import make_private
from .live import LIVE
from .persistence import BATCH, FORKED, Slot
from .sql import SqlStore


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
_KINDS: Final = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_PERM: "read-only",
    sqlite3.SQLITE_CANTOPEN: "folder",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_IOERR: "disk",
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
        self._abandoned: Any = None
        """The connection of a process that was forked in the middle of an update. Closing it would give up the locks of its parent."""
        super().__init__(self.path, timeout, live)
        self._rows("SELECT 1")

    # No key holds half a surrogate pair, which SQLite does not take either.
    @staticmethod
    def _name(key: str) -> str:
        return key.encode("utf-8", "replace").decode()

    _key = staticmethod(str)

    def _kind(self, error: Exception) -> str:
        return _kind(error)

    def _connect(self) -> sqlite3.Connection:
        if self._abandoned is not None:
            raise StoreError(FORKED.format(self.path))
        database = connect(self.path, self._timeout, self._synchronous)
        database.execute("PRAGMA busy_timeout = 0")
        return database

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

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

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
            self._abandoned = slot.link
            self._begin()
        elif self._waiting:
            slot.lock.release()


def connect(path: str, timeout_s: float, synchronous: Synchronous) -> sqlite3.Connection:
    """
    Returns a connection to the store in the file *path*, which is made for its owner only (0600) if it is not there.

    Raises StoreError if that fails, or if the file is another program's or of a newer version.
    """
    database = None
    # SQLite says better why a file cannot be made.
    with suppress(OSError):
        make_private(path)
    try:
        database = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        _check(database, path)
        _set_up(database, path, timeout_s)
        database.execute("PRAGMA synchronous = FULL" if synchronous == "full" else "PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        database.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        # Make the table if it is missing, and find out whether the file can be written.
        database.execute("BEGIN IMMEDIATE")
        if not _check(database, path):
            database.execute(_TABLE)
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("COMMIT")
    except (sqlite3.Error, StoreError) as error:
        if database is not None:
            database.close()
        raise explained(error, path, timeout_s) from error
    return database


def _check(database: sqlite3.Connection, path: str) -> bool:
    """
    Returns whether the file is ours; an empty one is nobody's. Raises StoreError for one of another program.
    """
    # In one statement, or another process that makes the file right now would be seen half-way.
    (application, version, tables), *_ = database.execute(
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


def _set_up(database: sqlite3.Connection, path: str, timeout_s: float) -> None:
    database.execute("PRAGMA trusted_schema = OFF")
    # Only a file that is still empty takes it, and the log would end that.
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    until = time.monotonic() + timeout_s
    while True:
        try:
            (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            # Where several processes make the file at once, SQLite does not wait here by itself.
            if _kind(error) != "busy" or time.monotonic() >= until:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise StoreError(f"`{path}` cannot have a write-ahead log (it says `{mode}`): use a file on a local disk")


def _kind(error: Exception) -> str:
    # The lower byte is the primary code.
    return _KINDS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")


def explained(error: Exception, path: str, timeout_s: float) -> StoreError:
    """
    Returns the error to raise for *error* at the store in *path*: its meaning, and its remedy.
    """
    return persistence.explained(error, _kind(error), path, timeout_s)
