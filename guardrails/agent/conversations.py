"""
Conversations of guarded agents, kept in a file of SQLite together with the state of their sessions; each message is on
the disk before its list has it.

    chats = Conversations("agent.db")
    chat = chats.start(wire="chat")
    session = policy.session(chat.id, store=chats.store)
    chat.append({"role": "user", "content": "book a hotel in Shibuya"})
    run(client, session, model="gpt-5-mini", messages=chat, tools=[search_hotels])
"""

import json
import secrets
import sqlite3
import threading
import time

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn, Self

from guardrails.core.envelope import Envelope
from guardrails.core.refusals import UNKNOWN
from guardrails.core.values.errors import GuardrailsError, SessionError
from guardrails.core.values.names import checked_id
from guardrails.core.values.types import End, Outcome
from guardrails.stores.persistence import explained, kind_of
from guardrails.stores.sqlite import KINDS, SqliteStore, connect


if TYPE_CHECKING:
    from guardrails.integrations.openai.wires import RequestedCall
    from guardrails.session.session import Session

Wire = Literal["chat", "responses"]
MAKE: Final = "CREATE TABLE items (name TEXT, n INTEGER, at_ms INTEGER, item TEXT NOT NULL, PRIMARY KEY (name, n))"
"""The row 0 of a conversation has its wire and its settings."""
TAKE_OVER: Final = (
    "INSERT INTO items SELECT name, 0, made_ms, json_object('wire', wire, 'settings', json(settings)) FROM conversations",
    "INSERT INTO items SELECT name, n, at_ms, item FROM messages m JOIN conversations c ON c.id = m.conversation",
    *(f"DROP TABLE {name}" for name in ("messages", "conversations", "conversation_tables")),
)
"""The tables of 0.2.0."""
LIST: Final = """SELECT c.name, max(c.n), min(c.at_ms), max(c.at_ms) AS last_ms, h.item FROM items c
JOIN items h ON h.name = c.name AND h.n = 0 GROUP BY c.name ORDER BY last_ms DESC, c.name"""
INTERRUPTED: Final = f"this call was {UNKNOWN}"


class ConversationError(GuardrailsError):
    """
    A conversation that is not there, is in use, or cannot be kept; nothing was changed.
    """


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


class Repaired(NamedTuple):
    """
    A call that was answered in place of its tool.
    """

    id: str
    tool: str
    admitted: bool
    """Its admission was open: it was running, or about to. False: it was refused, ended, or never asked for."""


class Conversation(list[dict[str, Any]]):
    """
    The messages of a conversation as they were sent and received, in their order; made by `Conversations`.

    `append` and `extend` write before they return, and `extend` adds all items or none. So a killed process loses no
    message that the list had. Messages stay as they were said: each method that would change them raises
    ConversationError. To be changed by one thread of one process: `append` refuses what another has gone on with.
    """

    def __init__(self, all_chats: "Conversations", name: str, head: Mapping[str, Any], items: Iterable[Any]) -> None:
        self.id = name
        self.wire: Wire = head["wire"]
        self.settings: dict[str, Any] = dict(head["settings"])
        """What its maker kept beside it: model, policy, and so on."""
        self.watch: Callable[[dict[str, Any]], object] = lambda message: None
        """Told of each message once it is kept."""
        self._all = all_chats
        super().__init__(items)

    def append(self, item: Any) -> None:
        """
        Keep *item*: a mapping of JSON, or an object of the openai client.

        Raises ConversationError if it is no JSON object, or another process went on with the conversation, StoreError
        if it cannot be written.
        """
        self.extend([item])

    def extend(self, items: Iterable[Any]) -> None:
        """
        Keep *items* in one transaction. Raises as `append` does, and keeps none then.
        """
        texts = [text_of(item) for item in items]
        self._all.add(self.id, len(self), texts)
        for message in map(json.loads, texts):
            super().append(message)
            self.watch(message)

    def __iadd__(self, items: Iterable[Any]) -> Self:  # type: ignore[override,misc]
        self.extend(items)
        return self

    def repair(self, session: "Session") -> list[Repaired]:
        """
        Answer the calls of a turn that a killed process left half finished; *session* is the one of this conversation. The
        amounts that it still reserves for them and for its sub-agents are settled, as these ended with their process.

        Nothing is executed again. To be called once a conversation was resumed, before it goes on.
        """
        from guardrails.integrations.openai.wires import WIRES

        wire = WIRES[self.wire]
        waiting: dict[str | None, RequestedCall] = {}
        for message in self:
            # Some servers use ids again.
            waiting |= {call.id: call for call in wire.calls_of(message)}
            waiting.pop(wire.answers(message), None)
        _close_children(session)
        answers, repaired = [], []
        for call in waiting.values():
            envelope, admitted = Envelope.error("cancelled", INTERRUPTED), False
            with suppress(SessionError):
                cancelled = End.of(Outcome(error_type="cancelled", error_message=INTERRUPTED), unknown=True)
                envelope, admitted = session.complete(call.id, cancelled, arguments=call.arguments), True
            repaired.append(Repaired(call.id, call.tool, admitted))
            if envelope.status == "error":
                # One that waits for a person has not run.
                envelope.hint("Find out whether it took effect before you call it again.")
            answers.append(wire.result(call, envelope.to_json()))
        self.extend(answers)
        return repaired

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ConversationError("what was said stays: messages of a kept conversation are appended only")

    __setitem__ = __delitem__ = __imul__ = insert = pop = remove = clear = sort = reverse = _refuse


class Conversations(AbstractContextManager["Conversations"]):
    """
    The conversations in the file *path*, which is made if it is missing; only its owner can read it.

    `store` keeps the state of their sessions in the same file, so that budgets go on where they stopped. Safe in any number
    of threads and processes. Waits up to *timeout* seconds for others that write. *clock*: seconds since 1970.

    Raises OSError if its folder cannot be made, StoreError if it cannot be opened, read or written, or is another
    program's; the methods raise that too.
    """

    def __init__(
        self, path: str | PathLike[str], *, timeout: float = 5.0, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = str(Path(path).absolute())
        self._clock, self._timeout, self._lock = clock, timeout, threading.Lock()
        Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.store = SqliteStore(self.path, timeout=timeout, synchronous="full")
        self._database = connect(self.path, timeout, "full")
        self._database.execute("PRAGMA secure_delete = ON")
        with self._transaction() as execute:
            tables = {name for (name,) in execute("SELECT name FROM sqlite_master")}
            for statement in () if "items" in tables else (MAKE, *(TAKE_OVER if "conversations" in tables else ())):
                execute(statement)

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
        name = secrets.token_hex(8) if id is None else checked_id(id)
        head, texts = {"wire": wire, "settings": dict(settings or {})}, [text_of(item) for item in messages]
        self.add(name, -1, [text_of(head), *texts])
        return Conversation(self, name, head, map(json.loads, texts))

    def resume(self, id: str) -> Conversation:
        """
        The conversation *id*, to go on with. Half a turn may be open in it: see `Conversation.repair`.

        Raises ConversationError if there is no conversation *id*, or it is damaged.
        """
        with self._transaction() as execute:
            rows = execute("SELECT item FROM items WHERE name = ? ORDER BY n", (checked_id(id),)).fetchall()
        if not rows:
            known = ", ".join(f"`{one.id}`" for one in self.listed()[:5]) or "none"
            raise ConversationError(f"there is no conversation `{id}` in `{self.path}`; the latest are: {known}")
        try:
            head, *items = (json.loads(text) for (text,) in rows)
            return Conversation(self, id, head, items)
        except (ValueError, KeyError, TypeError) as error:
            raise ConversationError(f"the conversation `{id}` in `{self.path}` is damaged: {error}") from error

    def listed(self) -> list[Summary]:
        """
        All of them, the one that was used last first.
        """
        with self._transaction() as execute:
            rows = [(*row[:4], json.loads(row[4])) for row in execute(LIST)]
        return [Summary(name, head["wire"], n, made, last, head["settings"]) for name, n, made, last, head in rows]

    def forget(self, id: str) -> None:
        """
        Drop the conversation *id* and the state of its session, and write over what the file held of it.

        Raises as `resume` does.
        """
        self.resume(id)
        with self._transaction() as execute:
            execute("DELETE FROM items WHERE name = ?", (id,))
        self.store.forget(id)
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def add(self, name: str, latest: int, texts: Iterable[str]) -> None:
        """
        Add *texts* behind the row *latest* of a conversation, which is its last one, all or none; -1: there is none.

        Raises ConversationError if it has more or fewer by now.
        """
        with self._transaction() as execute:
            ((last,),) = execute("SELECT ifnull(max(n), -1) FROM items WHERE name = ?", (name,))
            if last != latest:
                by_now = f"the conversation has {last} messages by now, not {latest}: another process goes on with it"
                taken = f"there is a conversation `{name}` already: resume it, or use another id"
                raise ConversationError(taken if latest < 0 else by_now)
            for n, text in enumerate(texts, latest + 1):
                execute("INSERT INTO items VALUES (?, ?, ?, ?)", (name, n, round(self._clock() * 1000), text))

    def close(self) -> None:
        """
        Close the file.
        """
        self._database.close()
        self.store.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """
        A transaction that is on the disk when it ends; nothing of it stays if the block raises.
        """
        try:
            with self._lock, self._database as database:
                database.execute("BEGIN IMMEDIATE")
                yield database.execute
        except sqlite3.Error as error:
            raise explained(error, kind_of(error, KINDS), self.path, self._timeout) from error


def text_of(item: Any) -> str:
    """
    Returns the JSON of *item*, a mapping or an object of the openai client. Raises ConversationError for what is no JSON
    object.
    """
    if hasattr(item, "model_dump"):
        # Fields that the server did not send are not sent back: some servers refuse the nulls.
        item = item.model_dump(mode="json", exclude_unset=True)
    if not isinstance(item, dict):
        raise ConversationError(f"a message is a JSON object, not `{item!r:.80}`")
    try:
        return json.dumps(item)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConversationError(f"a message that is not JSON cannot be kept: {error}") from None


def _close_children(session: "Session") -> None:
    """
    Give back what sub-agents held and did not use; what was open in them stays charged.
    """
    for child_id in session.ledger.read(lambda state, now: list(state.reserved)):
        with session.child(child_id.removeprefix(f"{session.id}/")) as child:
            _close_children(child)
