"""
Lists, reads and drops the states of a `SqliteStore` as rows of its file. It works in parts, so that calls of other
threads and processes get in between.
"""

import sqlite3

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

from guardrails.core.values.names import SCOPES
from guardrails.core.values.units import duration_ms

from .base import Stored


_BATCH: Final = 500
_READ: Final = "SELECT key, state, at_ms FROM states WHERE key = ?"
_FROM: Final = "SELECT key, state, at_ms FROM states WHERE key {} ? ORDER BY key LIMIT ?"
_IDLE: Final = "SELECT id FROM states WHERE at_ms < ? AND (? OR substr(key, 1, 1) <> ?) AND substr(key, 1, ?) = ?"


class Rows(ABC):
    """
    The steps of `SqliteStore` on its rows beside `update`.
    """

    _lock: Any

    @abstractmethod
    def _run(self, sql: str, *values: object) -> tuple[list[tuple[Any, ...]], int]:
        """
        The rows, and how many were changed. Raises RuntimeError from inside of a step.
        """

    @abstractmethod
    def _own(self) -> sqlite3.Connection: ...

    @abstractmethod
    def _explained(self, error: sqlite3.Error) -> Exception: ...

    @abstractmethod
    def _roll_back(self) -> None: ...

    @abstractmethod
    def _now(self) -> int: ...

    def __len__(self) -> int:
        with self._lock:
            count: int = self._run("SELECT count(*) FROM states")[0][0][0]
            return count

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        with self._lock:
            rows, _ = self._run(_READ, key) if _is_text(key) else ([], 0)
        return _stored(*rows[0]) if rows else None

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`. They come in the order of their keys.
        """
        above, last = ">=", prefix
        while _is_text(prefix):
            with self._lock:
                rows, _ = self._run(_FROM.format(above), last, _BATCH)
            for row in rows:
                if not row[0].startswith(prefix):
                    # Those that begin with it stand together.
                    return
                yield _stored(*row)
            if len(rows) < _BATCH:
                return
            above, last = ">", rows[-1][0]

    def prune(
        self,
        idle: float | str,
        *,
        scopes: bool = False,
        prefix: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """
        Drop sessions, and *scopes* if asked, that have not changed for *idle* (seconds, or `30d`) and whose key begins
        with *prefix*. Returns the number of dropped states. The function *progress* is told now and then how many they
        are so far.

        Space is given back to the disk. Call it now and then, in any process. The time must be longer than any of your
        sessions pauses between two calls. A scope that is dropped starts afresh, so the scopes of a budget that never
        ends must stay. Raises ValueError if *idle* is no duration.
        """
        before = self._now() - duration_ms(idle)
        dropped = 0
        with self._lock:
            rows, _ = (
                self._run(_IDLE, before, bool(scopes), SCOPES, len(prefix), prefix) if _is_text(prefix) else ([], 0)
            )
        for start in range(0, len(rows), _BATCH):
            with self._lock:
                self._run("BEGIN IMMEDIATE")
                try:
                    for (row,) in rows[start : start + _BATCH]:
                        # It may have been used meanwhile.
                        dropped += self._run("DELETE FROM states WHERE id = ? AND at_ms < ?", row, before)[1]
                    self._run("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
            if progress is not None:
                progress(dropped)
        self._shrink()
        return dropped

    def _shrink(self) -> None:
        with self._lock:
            pages = self._run("PRAGMA freelist_count")[0][0][0]
        for _ in range(0, pages, _BATCH):
            with self._lock:
                try:
                    # A statement that gives back a page at each step, which `execute` takes only one of.
                    self._own().executescript(f"PRAGMA incremental_vacuum({_BATCH})")
                except sqlite3.Error as error:
                    raise self._explained(error) from error


def _is_text(key: str) -> bool:
    """
    Whether *key* may be one: no key holds half a surrogate pair, which SQLite does not take either.
    """
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stored(key: str, packed: object, changed_ms: int) -> Stored:
    # What is no block of bytes, somebody else wrote: as damaged as none.
    return Stored(key, packed if isinstance(packed, bytes) else b"", changed_ms)
