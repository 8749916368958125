"""
The tools that remember across sessions, in a file of SQLite: memory_read, memory_write.
"""

import os
import sqlite3
import stat
import time

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.stores.places import make_private

from .failure import ToolFailure, ToolSet


MAX_KEY_CHARS: Final = 256
MAX_TEXT_BYTES: Final = 65_536
MAX_NOTES: Final = 10_000
MAX_QUERY_CHARS: Final = 256
MAX_SECONDS: Final = 10.0
"""Of one look: beyond, it is given up."""
_BUSY_S: Final = 5.0
_STEPS: Final = 10_000
"""Of SQLite, between two looks at the clock."""
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, text TEXT NOT NULL, changed_ms INTEGER NOT NULL)"
)
_SHOWN_BYTES: Final = 49_152
_MAX_ROW_BYTES: Final = 1 << 20


class Memory(ToolSet):
    """
    Notes in the file *path*, which is made if it is missing. Safe in several processes at once.
    """

    names = ("memory_read", "memory_write")

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self._path = os.fspath(path)
        self._clock = clock

    def memory_read(self, query: str = "", limit: Annotated[int, Ge(1), Le(100)] = 20) -> Envelope:
        """
        Read notes whose key or text holds `query`, the latest first; without one, all.
        """
        if len(query) > MAX_QUERY_CHARS:
            raise ToolFailure("validation", f"a query has at most {MAX_QUERY_CHARS} characters", retryable=False)
        query = _valid(query, "query")
        pattern = "%" + query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        where = "WHERE key LIKE ? ESCAPE '\\' OR text LIKE ? ESCAPE '\\'"
        with self._opened() as notes:
            total = notes.execute(f"SELECT count(*) FROM notes {where}", (pattern, pattern)).fetchone()[0]  # noqa: S608
            rows = notes.execute(
                f"SELECT key, text, changed_ms FROM notes {where} ORDER BY changed_ms DESC, key LIMIT ?",  # noqa: S608
                (pattern, pattern, limit),
            ).fetchall()
        shown: list[dict[str, Any]] = []
        size = 0
        for key, text, changed in rows:
            if not (isinstance(key, str) and isinstance(text, str)):
                # Nothing that was written here.
                continue
            size += len(text.encode())
            if shown and size > _SHOWN_BYTES:
                break
            shown.append({"key": key, "text": text, "changed_ms": changed})
        complete = len(shown) == total
        hint = None if complete else "There are more: ask for a narrower `query`."
        return Envelope.success(shown, total_matches=total, is_complete=complete, next_action_hint=hint)

    def memory_write(self, key: str, text: str) -> dict[str, Any]:
        """
        Keep `text` as the note `key`; it replaces an earlier one. An empty text deletes it.
        """
        if not key.strip() or len(key) > MAX_KEY_CHARS:
            raise ToolFailure("validation", f"a key has 1 to {MAX_KEY_CHARS} characters", retryable=False)
        key = _valid(key, "key")
        size = len(text.encode(errors="replace"))
        if size > MAX_TEXT_BYTES:
            raise ToolFailure("too_large", f"the text has {size:,} bytes (limit {MAX_TEXT_BYTES:,})", retryable=False)
        with self._opened() as notes:
            if not text:
                gone = notes.execute("DELETE FROM notes WHERE key = ?", (key,)).rowcount
                return {"key": key, "deleted": bool(gone)}
            there = notes.execute("SELECT 1 FROM notes WHERE key = ?", (key,)).fetchone() is not None
            if not there and notes.execute("SELECT count(*) FROM notes").fetchone()[0] >= MAX_NOTES:
                raise ToolFailure("too_large", f"there are {MAX_NOTES:,} notes: delete some", retryable=False)
            row = (key, text.encode(errors="replace").decode(), int(self._clock() * 1000))
            notes.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", row)
        return {"key": key, "bytes": size, "created": not there}

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """
        The notes in one transaction. Raises ToolFailure if the file is locked, full or no database.
        """
        deadline = time.monotonic() + MAX_SECONDS
        try:
            _make(self._path)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)) as notes:
                # Who else can write the file may have put another table there: it says no more than notes do.
                notes.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_ROW_BYTES)
                notes.execute("PRAGMA trusted_schema = OFF")
                notes.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
                notes.execute("BEGIN IMMEDIATE")
                notes.execute(_TABLE)
                yield notes
                notes.execute("COMMIT")
        except OSError as error:
            said = (error.strerror or "unknown").lower()
            raise ToolFailure("unavailable", f"the memory cannot be used: {said}") from error
        except sqlite3.OperationalError as error:
            if time.monotonic() > deadline:
                raise ToolFailure("timeout", f"the memory took more than {MAX_SECONDS:g} s") from error
            raise ToolFailure("unavailable", f"the memory cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ToolFailure("other", f"the memory's file is damaged: {error}", retryable=False) from error


def _make(path: str) -> None:
    """
    The file *path*, its owner's alone, if there is none. Raises OSError, ToolFailure if it is no regular file.
    """
    make_private(path)
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise ToolFailure("unavailable", "the memory cannot be used: its file is no regular file")


def _valid(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolFailure("validation", f"the {name} is not valid Unicode", retryable=False) from None
    return text
