"""
Opens, makes and recognises the database file of `SqliteStore`, and explains failures of that.
"""

import sqlite3
import time

from contextlib import suppress
from typing import Final, Literal

from guardrails.core.values.errors import StoreError

from .folders import make_private


APPLICATION_ID: Final = 0x54434752
"""`TCGR` in the file's header: what `file` and others may know it by."""
VERSION: Final = 1
"""Of the tables; the states in them say their own."""

Synchronous = Literal["normal", "full"]

_TABLE: Final = """
CREATE TABLE states (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at_ms INTEGER NOT NULL, state BLOB NOT NULL)
"""
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_WAL_BYTES: Final = 16 << 20
"""What the write-ahead log is cut to after a checkpoint."""
_WAL_PAGES: Final = 4_000
"""How long it grows before one, which waits for the disk: about as many steps, each of which writes a page or two."""
_RETRY_S: Final = 0.005
_NO_FILE: Final = frozenset({"", ":memory:"})


def connect(path: str, timeout_s: float, synchronous: Synchronous) -> sqlite3.Connection:
    """
    Returns a connection to the store in the file *path*, which is made for its owner only (0600) if it is not there.

    Raises StoreError if that fails, or if the file is another program's or of a newer version.
    """
    database = None
    # SQLite says better why a file cannot be made.
    with suppress(OSError):
        if path not in _NO_FILE:
            make_private(path)
    try:
        database = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        _check(database, path)
        _set_up(database, path, timeout_s)
        database.execute("PRAGMA synchronous = FULL" if synchronous == "full" else "PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        database.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        _make(database)
        _check(database, path)
    except (sqlite3.Error, StoreError) as error:
        if database is not None:
            database.close()
        raise explained(error, path, timeout_s) from error
    return database


def _check(database: sqlite3.Connection, path: str) -> None:
    """
    Refuse a file that is not ours. An empty one is nobody's.
    """
    # In one transaction, or another process that makes the file right now would be seen half-way.
    database.execute("BEGIN")
    try:
        application, version = _number(database, "application_id"), _number(database, "user_version")
        taken = database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    finally:
        database.execute("ROLLBACK")
    if application == APPLICATION_ID:
        if version > VERSION:
            raise StoreError(
                f"`{path}` was written by a newer version of this library (tables of version {version}, this one reads "
                f"{VERSION}): upgrade, or use another file"
            )
        return
    if application or version or taken:
        raise StoreError(f"`{path}` is a database of another program: use another file")


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
            if not is_busy(error) or time.monotonic() >= until:
                raise
            time.sleep(_RETRY_S)
    if mode != "wal":
        raise StoreError(f"`{path}` cannot have a write-ahead log (it says `{mode}`): use a file on a local disk")


def _make(database: sqlite3.Connection) -> None:
    """
    Make the table if it is missing, and find out whether the file can be written.
    """
    database.execute("BEGIN IMMEDIATE")
    if _number(database, "application_id") != APPLICATION_ID:
        database.execute(_TABLE)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")


def _number(database: sqlite3.Connection, pragma: Literal["application_id", "user_version"]) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])


def explained(error: Exception, path: str, timeout_s: float) -> StoreError:
    """
    Returns the error to raise for *error* at the store in *path*: its meaning, and its remedy.
    """
    if isinstance(error, StoreError):
        return error
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            said = (
                f"was locked by another program for {timeout_s:g} s: end what holds it (an open transaction, a copy in "
                "progress), or give the store a longer `timeout`"
            )
        case sqlite3.SQLITE_FULL:
            said = "cannot grow, its disk is full: free some space; what was admitted before is kept"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            said = "is read-only: give this process the right to write it and its folder"
        case sqlite3.SQLITE_CANTOPEN:
            said = "cannot be opened: its folder must be there, and this process must be allowed to write it"
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            said = (
                "is damaged, or no database: put a copy of it back, or move it away together with its `-wal` and `-shm` "
                "files, which starts all sessions and scopes afresh"
            )
        case sqlite3.SQLITE_IOERR:
            said = "cannot be read or written, its disk failed: see the system's log"
        case _:
            said = "cannot be used"
    return StoreError(f"the store `{path}` {said} ({error})")


def is_busy(error: Exception) -> bool:
    """
    Returns whether somebody else has the file, for a moment.
    """
    return _code(error) in _BUSY


def _code(error: Exception) -> int:
    # The lower byte is the primary code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
