"""
Sessions in a file of SQLite, shared by all processes of one machine.
"""

import os
import sqlite3
import threading
import time

from collections.abc import Callable, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any, Final, Self, TypeVar

from guardrails.core.state import SessionState
from guardrails.core.values.errors import StoreError

from .base import NESTED
from .line import PAUSE_S, Line
from .live import LIVE, Held, Live, unpacked
from .sqlite_file import Synchronous, connect, explained, is_busy
from .sqlite_forks import keep_track
from .sqlite_rows import Rows


T = TypeVar("T")
_SELECT: Final = "SELECT id, state FROM states WHERE key = ?"
_INSERT: Final = "INSERT INTO states (state, at_ms, key) VALUES (?, ?, ?)"
_UPDATE: Final = "UPDATE states SET state = ?, at_ms = ? WHERE id = ?"


class SqliteStore(Rows):
    """
    States in the file *path*, which is made if it is missing. Safe in any number of threads and processes.

    One `update` is one transaction (`BEGIN IMMEDIATE`, write-ahead log): once it returns, kill -9 forgets nothing of
    it. A power failure may forget the latest transactions unless *synchronous* is `full`. It waits up to *timeout*
    seconds for other processes, then raises StoreError. It also raises StoreError if the file cannot be opened, read or
    written. Nothing is changed then.

    The file must be on a local disk. It grows with the number of sessions: see `prune`, which goes by *clock*.
    """

    blocks: Final = True

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
        self._timeout = timeout
        self._synchronous: Synchronous = synchronous
        self._clock = clock
        self._live = Live(live)
        self._line = Line(self.path)
        self._database: sqlite3.Connection | None = None
        self._held_by_fork = False
        self._taken_along = False
        """This process was forked in the middle of an update."""
        self._begin()
        self._open()
        keep_track(self)

    def _begin(self) -> None:
        # Reentrant, so that a step which asks the store finds itself out instead of waiting for itself.
        self._lock = threading.RLock()
        self._in_step = False

    def _open(self) -> sqlite3.Connection:
        if self._taken_along:
            raise StoreError(
                f"this process was forked in the middle of an update of the store `{self.path}`, and cannot use it. "
                "Start it by spawn, or not from inside of a guard"
            )
        self._database = connect(self.path, self._timeout, self._synchronous)
        self._database.execute("PRAGMA busy_timeout = 0")  # It waits in line.
        self._execute = self._database.cursor().execute
        return self._database

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises, or is interrupted.
        """
        try:
            with self._lock:
                if self._in_step:
                    raise RuntimeError(NESTED)
                self._in_step = True
                try:
                    return self._transact(keys, step)
                finally:
                    self._in_step = False
        except sqlite3.Error as error:
            raise explained(error, self.path, self._timeout) from error

    def _transact(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        if self._database is None:
            self._open()
        elif self._database.in_transaction:
            self._roll_back()  # What rolled back the step before was interrupted too.
        execute = self._execute
        try:
            self._take_turn()
            taken = [self._take(key) for key in keys]
            result = step([held.state for held in taken])
            if self._database is None:
                self._open()  # The step forked, and this is the new process: says so.
            for key, held in zip(keys, taken, strict=True):
                packed = held.pack()
                if held.mark is None:
                    held.mark = execute(_INSERT, (packed, self._now(), key)).lastrowid
                elif packed != held.packed:
                    execute(_UPDATE, (packed, self._now(), held.mark))
                held.packed = packed
            execute("COMMIT")
            self._live.keep(keys, taken)
        except BaseException:
            self._roll_back()
            raise
        return result

    def _take_turn(self) -> None:
        """
        Begin to write, in the order in which processes asked.
        """
        until = time.monotonic() + self._timeout
        self._line.wait(until)
        try:
            self._patiently(lambda: self._execute("BEGIN IMMEDIATE"), until)
        finally:
            self._line.leave()

    def _patiently(self, ask: Callable[[], T], until: float) -> T:
        """
        Returns the answer of the file, asked again while somebody else has it.
        """
        while True:
            try:
                return ask()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= until:
                    raise
            # The pauses of SQLite itself are of milliseconds, and the writer before is done in a tenth of one.
            time.sleep(PAUSE_S / 2)

    def _take(self, key: str) -> Held:
        held = self._live.take(key)
        found = self._execute(_SELECT, (key,)).fetchone()
        if found is None:
            return Held(None, b"", SessionState())
        row, packed = found
        if held is not None and held.mark == row and held.packed == packed:
            return held
        return Held(row, packed, unpacked(key, packed, self.path))

    def _now(self) -> int:
        return round(self._clock() * 1000)

    def _roll_back(self) -> None:
        database = self._database
        if database is None or not database.in_transaction:
            return
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
            return
        self._close()

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        with self._lock:
            self._live.take(key)
            self._run("DELETE FROM states WHERE key = ?", key)

    def _run(self, sql: str, *values: object) -> tuple[list[tuple[Any, ...]], int]:
        if self._in_step:
            raise RuntimeError(NESTED)
        try:
            done = self._patiently(lambda: self._own().execute(sql, values), time.monotonic() + self._timeout)
            return done.fetchall(), done.rowcount
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _own(self) -> sqlite3.Connection:
        return self._database or self._open()

    def _explained(self, error: sqlite3.Error) -> StoreError:
        return explained(error, self.path, self._timeout)

    def close(self) -> None:
        """
        Close the file; the next use opens it again.
        """
        with self._lock:
            if self._in_step:
                raise RuntimeError(NESTED)
            self._close()

    def _close(self) -> None:
        database, self._database = self._database, None
        self._live.clear()
        self._line.close()
        if database is not None:
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_database", None) is not None:
            self._close()

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"
