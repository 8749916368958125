"""
The tools that remember across sessions, in a file of SQLite: memory_read, memory_write.
"""

import os
import sqlite3
import time

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.stores.places import make_private

from .failure import ToolFailure, ToolSet, encoded, page


MAX_KEY_CHARS: Final = 256
MAX_TEXT_BYTES: Final = 65_536
MAX_NOTES: Final = 10_000
MAX_SHOWN_BYTES: Final = 49_152
_BUSY_S: Final = 5.0
_TABLE: Final = "CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, text TEXT NOT NULL, changed_ms INT NOT NULL)"
_FOUND: Final = """
SELECT key, text, changed_ms FROM notes WHERE instr(lower(key), lower(?1)) OR instr(lower(text), lower(?1))
ORDER BY changed_ms DESC, key
"""


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
        encoded(query, MAX_TEXT_BYTES)
        with self._opened() as notes:
            rows = notes.execute(_FOUND, (query,)).fetchall()
        shown: list[dict[str, Any]] = []
        room = MAX_SHOWN_BYTES
        for key, text, changed_ms in rows[:limit]:
            room -= len(text.encode())
            if shown and room < 0:
                break
            shown.append({"key": key, "text": text, "changed_ms": changed_ms})
        more = None if len(shown) == len(rows) else "There are more: ask for a narrower `query`."
        return page(shown, more, total_matches=len(rows))

    def memory_write(self, key: str, text: str) -> dict[str, Any]:
        """
        Keep `text` as the note `key`; it replaces an earlier one. An empty text deletes it.
        """
        if not key.strip() or len(key) > MAX_KEY_CHARS:
            raise ToolFailure("validation", f"a key has 1 to {MAX_KEY_CHARS} characters")
        encoded(key, MAX_TEXT_BYTES)
        size = len(encoded(text, MAX_TEXT_BYTES))
        with self._opened() as notes:
            gone = bool(notes.execute("DELETE FROM notes WHERE key = ?", (key,)).rowcount)
            if not text:
                return {"key": key, "deleted": gone}
            ((count,),) = notes.execute("SELECT count(*) FROM notes")
            if count >= MAX_NOTES:
                raise ToolFailure("too_large", f"there are {MAX_NOTES:,} notes: delete some")
            notes.execute("INSERT INTO notes VALUES (?, ?, ?)", (key, text, round(self._clock() * 1000)))
        return {"key": key, "bytes": size, "created": not gone}

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """
        The notes in one transaction. Raises ToolFailure if the file is locked, full or no database.
        """
        try:
            make_private(self._path)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)) as notes:
                notes.execute("PRAGMA trusted_schema = OFF")
                notes.execute("BEGIN IMMEDIATE")
                notes.execute(_TABLE)
                yield notes
                notes.execute("COMMIT")
        except (OSError, sqlite3.OperationalError) as error:
            raise ToolFailure("unavailable", f"the memory cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ToolFailure("other", f"the memory's file is damaged: {error}", retryable=False) from error
