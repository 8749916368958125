"""
All conversations of one file: started, taken up again, listed, forgotten.
"""

import difflib
import os
import secrets
import time

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Final, NamedTuple, Self, get_args

from guardrails.core.values.names import checked_id
from guardrails.stores.sqlite import SqliteStore

from .file import ADD, ConversationError, File
from .items import parsed, text_of
from .kept import Conversation, Wire


WIRES: Final = get_args(Wire)
_ALPHABET: Final = "abcdefghjkmnpqrstvwxyz23456789"
_NAMED: Final = 5
"""Of the conversations that there are, if one is asked for that there is not."""
_LENGTH: Final = 12
"""59 bits: nobody guesses one, and a person can copy it."""


class Summary(NamedTuple):
    """
    The line of a conversation in a list.
    """

    id: str
    wire: str
    messages: int
    made_ms: int
    last_ms: int
    """When its latest message was kept."""
    settings: Mapping[str, Any]


class Conversations:
    """
    The conversations in the file *path*, which is made if it is missing; only its owner can read it.

    `store` keeps the state of their sessions in the same file, so that budgets go on where they stopped. Safe in any number
    of threads and processes. Waits up to *timeout* seconds for others
    that write. *clock*: seconds since 1970.

    Raises StoreError if the file cannot be opened, read or written, or is another program's; the methods raise it too.
    """

    def __init__(
        self, path: str | PathLike[str], *, timeout: float = 5.0, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = os.path.abspath(path)  # noqa: PTH100
        self._clock = clock
        _private(self.path)
        self.store = SqliteStore(self.path, timeout=timeout, synchronous="full")
        try:
            self._file = File(self.path, timeout)
        except BaseException:
            self.store.close()
            raise

    def start(
        self,
        id: str | None = None,
        *,
        wire: Wire = "chat",
        messages: Iterable[Any] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """
        A new conversation, with *messages* to begin with; without *id* it gets one that nobody can guess.

        *settings* are kept beside it, JSON. Raises SessionError if *id* cannot name a session, ConversationError if it
        is taken.
        """
        name = new_id() if id is None else checked_id(id)
        if wire not in WIRES:
            raise ConversationError(f"unknown wire `{wire}`: use {' or '.join(WIRES)}")
        texts = [text_of(item) for item in messages]
        at_ms = round(self._clock() * 1000)
        kept = text_of(dict(settings or {}))
        with self._file.writing() as execute:
            if execute("SELECT 1 FROM conversations WHERE name = ?", (name,)).fetchone():
                raise ConversationError(f"there is a conversation `{name}` already: resume it, or use another id")
            ((row,),) = execute(
                "INSERT INTO conversations (name, wire, made_ms, settings) VALUES (?, ?, ?, ?) RETURNING id",
                (name, wire, at_ms, kept),
            ).fetchall()
            for n, text in enumerate(texts, 1):
                execute(ADD, (row, n, at_ms, text))
        return Conversation(self._file, row, name, wire, settings or {}, self._clock)

    def resume(self, id: str) -> Conversation:
        """
        The conversation *id*, to go on with. Half a turn may be open in it: see `Conversation.repair`.

        Raises ConversationError if there is no conversation *id*, or it is damaged.
        """
        checked_id(id)
        found = self._file.read("SELECT id, wire, settings FROM conversations WHERE name = ?", id)
        if not found:
            raise ConversationError(self._unknown(id))
        row, wire, settings = found[0]
        try:
            if wire not in WIRES:
                raise ConversationError(f"its wire `{wire}` is unknown")
            return Conversation(self._file, row, id, wire, parsed(settings), self._clock)
        except ConversationError as error:
            raise ConversationError(f"the conversation `{id}` in `{self.path}` is damaged: {error}") from error

    def listed(self) -> list[Summary]:
        """
        All of them, the one that was used last first.
        """
        rows = self._file.read(
            "SELECT c.name, c.wire, count(m.id), c.made_ms, coalesce(max(m.at_ms), c.made_ms) AS last_ms, c.settings "
            "FROM conversations c LEFT JOIN messages m ON m.conversation = c.id GROUP BY c.id ORDER BY last_ms DESC, c.id"
        )
        return [Summary._make((*said, _readable(kept))) for *said, kept in rows]

    def forget(self, id: str) -> None:
        """
        Drop the conversation *id* and the state of its session, and write over what the file held of it.

        Raises as `resume` does.
        """
        self.resume(id)
        with self._file.writing() as execute:
            execute("DELETE FROM messages WHERE conversation = (SELECT id FROM conversations WHERE name = ?)", (id,))
            execute("DELETE FROM conversations WHERE name = ?", (id,))
        self.store.forget(id)
        self._file.read("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """
        Close the file.
        """
        self._file.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unknown(self, id: str) -> str:
        names = [name for (name,) in self._file.read("SELECT name FROM conversations ORDER BY id DESC LIMIT 1000")]
        near = difflib.get_close_matches(id, names, 1)
        latest = ", ".join(f"`{name}`" for name in names[:_NAMED])
        others = f", ... ({len(names)} of them)" if len(names) > _NAMED else ""
        hint = f"did you mean `{near[0]}`?" if near else f"there are {latest}{others}" if names else "it holds none"
        return f"there never was a conversation `{id}` in `{self.path}`, or it was forgotten; {hint}"


def _readable(settings: str) -> dict[str, Any]:
    # One that is damaged must not hide the others.
    try:
        return parsed(settings)
    except ConversationError:
        return {}


def new_id() -> str:
    """
    The id of a new conversation, drawn at random.
    """
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


def _private(path: str) -> None:
    """
    Make the file and its folder if they are missing, for its owner only: conversations hold secrets.
    """
    folder = os.path.dirname(path)  # noqa: PTH120
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConversationError(f"cannot make `{path}`: {error.strerror}") from None
