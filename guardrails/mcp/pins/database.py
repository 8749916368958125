"""
The file of pins: SQLite, opened, made and changed in transactions.
"""

import os
import sqlite3

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from guardrails.stores.folders import make_private


APPLICATION_ID: Final = 0x54434750
"""`TCGP` in the file's header."""
VERSION: Final = 1
WAIT_S: Final = 2.0
"""How long another process may hold the file."""
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS pins (
    server TEXT NOT NULL, label TEXT NOT NULL, tool TEXT NOT NULL, first_seen INTEGER NOT NULL,
    declared TEXT NOT NULL, changed TEXT, reason TEXT NOT NULL DEFAULT '', PRIMARY KEY (server, tool)
)
"""
_ROWS: Final = "SELECT server, label, tool, first_seen, declared, changed, reason FROM pins"


def rows(database: sqlite3.Connection, server: str | None = None) -> list[tuple[Any, ...]]:
    """
    All pins, by label and tool; those of *server* if it is given.
    """
    if server is not None:
        return database.execute(f"{_ROWS} WHERE server = ?", (server,)).fetchall()
    return database.execute(f"{_ROWS} ORDER BY label, server, tool").fetchall()


def left_in(path: str) -> list[tuple[Any, ...]]:
    """
    The pins in the file *path* that can be read without a change of it; none if it is locked or damaged.
    """
    file = Path(path).absolute()
    with suppress(sqlite3.Error, OSError, ValueError):
        if file.is_file():
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=0)) as database:
                return rows(database)
    return []


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """
    Do all that is done in it, or nothing.
    """
    database.execute("BEGIN IMMEDIATE")
    try:
        yield database
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def opened(path: str | None) -> sqlite3.Connection:
    """
    The file *path*, made if it is not there; None: one in memory. Raises sqlite3.Error or OSError if it cannot be used.
    """
    if path is not None:
        folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        make_private(path)
    database = sqlite3.connect(path or ":memory:", timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        _check(database)
        with transaction(database):
            database.execute(_TABLE)
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        database.close()
        raise
    return database


def _check(database: sqlite3.Connection) -> None:
    application, version = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    taken = database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if application not in (0, APPLICATION_ID) or (taken and not application):
        raise sqlite3.DatabaseError("it is a database of another program")
    if version > VERSION:
        raise sqlite3.DatabaseError("it was written by a newer version of this library: upgrade")
