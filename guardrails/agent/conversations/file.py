"""
The tables of conversations in the file of a `SqliteStore`: made, read, appended to.
"""

import os
import sqlite3
import threading

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError
from guardrails.stores.sqlite import connect, explained


VERSION: Final = 1
"""Of these tables, which `conversation_tables` holds: a later one is refused."""

_TABLES: Final = f"""
CREATE TABLE conversation_tables (version INTEGER NOT NULL);
INSERT INTO conversation_tables VALUES ({VERSION});
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, wire TEXT NOT NULL, made_ms INTEGER NOT NULL, settings TEXT NOT NULL
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, n INTEGER NOT NULL, at_ms INTEGER NOT NULL, item TEXT NOT NULL,
    UNIQUE (conversation, n)
);
CREATE TRIGGER messages_are_appended_only BEFORE UPDATE ON messages BEGIN SELECT RAISE(ABORT, 'a message never changes'); END
"""  # noqa: S608  a constant
ADD: Final = "INSERT INTO messages (conversation, n, at_ms, item) VALUES (?, ?, ?, ?)"


class ConversationError(GuardrailsError):
    """
    A conversation that is not there, is in use, or cannot be kept; nothing was changed.
    """


class File:
    """
    The file *path*; safe in any number of threads and processes.

    One `writing` block is one transaction that is on the disk when it ends (`synchronous=FULL`). So kill -9 and power
    failures lose no message that was appended. Errors of SQLite are raised as StoreError.
    """

    def __init__(self, path: str, timeout_s: float) -> None:
        self.path = path
        self._timeout = timeout_s
        self._lock = threading.Lock()
        self._process = os.getpid()
        try:
            self._database = connect(path, timeout_s, "full")
        except sqlite3.Error as error:
            raise explained(error, path, timeout_s) from error
        try:
            self._database.execute("PRAGMA secure_delete = ON")
            with self.writing() as execute:
                _make(execute, path)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """
        A transaction that begins by taking the right to write; nothing of it stays if the block raises.
        """
        with self._lock:
            execute = self._own().execute
            try:
                execute("BEGIN IMMEDIATE")
                yield execute
                execute("COMMIT")
            except BaseException as error:
                self._roll_back()
                if isinstance(error, sqlite3.Error):
                    raise explained(error, self.path, self._timeout) from error
                raise

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """
        The rows of a query.
        """
        with self._lock:
            try:
                return self._own().execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise explained(error, self.path, self._timeout) from error

    def append(self, conversation: int, expected: int, at_ms: int, texts: Sequence[str]) -> None:
        """
        Add *texts* to a conversation of *expected* messages, all or none.

        Raises ConversationError if it has more or fewer by now.
        """
        with self.writing() as execute:
            if execute("SELECT 1 FROM conversations WHERE id = ?", (conversation,)).fetchone() is None:
                raise ConversationError("the conversation was forgotten meanwhile")
            # Numbers are dense, and the highest one is found without counting.
            ((count,),) = execute("SELECT coalesce(max(n), 0) FROM messages WHERE conversation = ?", (conversation,))
            if count != expected:
                raise ConversationError(
                    f"the conversation has {count} messages by now, not {expected}: another process goes on with it"
                )
            for n, text in enumerate(texts, expected + 1):
                execute(ADD, (conversation, n, at_ms, text))

    def close(self) -> None:
        """
        Close the file for good.
        """
        with self._lock:
            self._database.close()

    def _own(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise ConversationError(f"`{self.path}` was opened before this process was forked: open it again here")
        return self._database

    def _roll_back(self) -> None:
        try:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
        except sqlite3.Error:
            self._database.close()


def _make(execute: Callable[..., sqlite3.Cursor], path: str) -> None:
    made = execute("SELECT 1 FROM sqlite_master WHERE name = 'conversation_tables'").fetchone()
    if made is None:
        for statement in _TABLES.split(";\n"):
            execute(statement)
    (version,) = execute("SELECT version FROM conversation_tables").fetchone()
    if version > VERSION:
        raise ConversationError(
            f"`{path}` was written by a newer version of this library (conversations of version {version}, this one reads "
            f"{VERSION}): upgrade, or use another file"
        )
