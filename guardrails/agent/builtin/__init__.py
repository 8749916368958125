"""
Tools of an agent: files, a shell, memory, the web, sub-agents, messages; small, bounded, and told as data when they fail.
"""

import os
import secrets
import sqlite3
import time

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack

from annotated_types import Ge, Le, MaxLen, MinLen

from guardrails.core.envelope import Envelope
from guardrails.core.guards.budget import Amounts
from guardrails.core.text.control import sanitise
from guardrails.core.values.errors import SessionError
from guardrails.policy.policy import Policy
from guardrails.policy.tools import Registry
from guardrails.processes.sandbox import Name
from guardrails.session.steps import seconds_left
from guardrails.stores.places import make_private

from .failure import ToolFailure, ToolSet, failure_of, page
from .files import Files as Files
from .files import Root as Root
from .shell import Shell as Shell
from .web import Web as Web


if TYPE_CHECKING:
    from guardrails.session.session import Session

DECLARATIONS: Final = ("read_only", "idempotent", "paths", "commands", "timeout")
"""The fields of a tool that `policies/agent.yaml` declares."""
MAX_NOTES: Final = 10_000
MAX_SHOWN_BYTES: Final = 49_152
BUSY_S: Final = 5.0
MAX_DEPTH: Final = 2
"""Sub-agents of sub-agents."""
_TABLE: Final = "CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, text TEXT NOT NULL, changed_ms INT NOT NULL)"
_SEARCH: Final = """SELECT key, text, changed_ms FROM notes WHERE instr(lower(key), lower(?1)) OR instr(lower(text), lower(?1))
ORDER BY changed_ms DESC, key"""
Agent = Callable[[str, "Session"], Any]
"""`agent(task, session)` works on the task within the session and returns its answer."""


def builtin_tools(
    workspace: str | os.PathLike[str],
    *,
    memory: str | os.PathLike[str] | None = None,
    shell: Shell | bool = True,
    web: Web | bool = True,
    spawn: "Spawn | None" = None,
    message: Callable[[str], object] | None = None,
    sandbox: Name = "auto",
    network: bool = False,
) -> Registry:
    """
    The tools of an agent that works in the folder *workspace*.

    *memory* is the file of its notes; without one it has none. A `Shell` or `Web` of one's own has other time limits,
    addresses or a search endpoint; False leaves it out. Tools for *spawn* and *message* are there if they are given.

    *sandbox* (`auto`, `bwrap`, `read-only`, `none`) confines commands, which reach the *network* only if they are let;
    see `Shell`. With `none` they may do what this process may.

    Put guards before them: `Policy.load("agent")` has those for commands, paths and budgets. Raises OSError if there is
    no such folder.
    """
    root = Root(workspace)
    sets: list[ToolSet | bool | None] = [
        Files(root),
        Shell(root, sandbox=sandbox, network=network) if shell is True else shell,
        None if memory is None else Memory(memory),
        Web() if web is True else web,
        spawn,
        None if message is None else Outbox(message),
    ]
    registry, chain = Registry(), Policy.load("agent").chain
    for tools in (made.tools for made in sets if isinstance(made, ToolSet)):
        for name, function in tools.items():
            declared = chain.plan(name).tool
            registry.register(function, name=name, **{field: getattr(declared, field) for field in DECLARATIONS})
    return registry


class Memory(ToolSet):
    """
    Notes across sessions in the SQLite file *path*, which is made if it is missing. Safe in several processes at once.
    """

    names = ("memory_read", "memory_write")

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self._path = os.fspath(path)
        self._clock = clock

    def memory_read(self, query: str = "", limit: Annotated[int, Ge(1), Le(100)] = 20) -> Envelope:
        """
        Read notes whose key or text holds `query`, the latest first; without one, all.
        """
        with self._opened() as notes:
            rows = notes.execute(_SEARCH, (query,)).fetchall()
        shown: list[dict[str, Any]] = []
        room = MAX_SHOWN_BYTES
        for key, text, changed_ms in rows[:limit]:
            room -= len(text.encode())
            if shown and room < 0:
                break
            shown.append({"key": key, "text": text, "changed_ms": changed_ms})
        more = None if len(shown) == len(rows) else "There are more: ask for a narrower `query`."
        return page(shown, more, total_matches=len(rows))

    def memory_write(
        self, key: Annotated[str, MinLen(1), MaxLen(256)], text: Annotated[str, MaxLen(65_536)]
    ) -> dict[str, Any]:
        """
        Keep `text` as the note `key`; it replaces an earlier one. An empty text deletes it.
        """
        with self._opened() as notes:
            gone = bool(notes.execute("DELETE FROM notes WHERE key = ?", (key,)).rowcount)
            if not text:
                return {"key": key, "deleted": gone}
            ((count,),) = notes.execute("SELECT count(*) FROM notes")
            if count >= MAX_NOTES:
                raise ToolFailure("too_large", f"there are {MAX_NOTES:,} notes: delete some")
            notes.execute("INSERT INTO notes VALUES (?, ?, ?)", (key, text, round(self._clock() * 1000)))
        return {"key": key, "created": not gone}

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """
        The notes in one transaction. Raises ToolFailure if the file is locked, full or no database.
        """
        try:
            make_private(self._path)
            with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as notes:
                notes.execute("PRAGMA trusted_schema = OFF")
                notes.execute("BEGIN IMMEDIATE")
                notes.execute(_TABLE)
                yield notes
                notes.execute("COMMIT")
        except (OSError, sqlite3.DatabaseError) as error:
            raise failure_of(error, f"the memory cannot be used ({error})") from error


class Spawn(ToolSet):
    """
    Starts *agent* on a task, with a share of the budget of *session*: *amounts* of its limits (`max_calls=20`,
    `max_cost_usd=0.1`). The part that the sub-agent does not use comes back. It has no more time than the call of
    `spawn`: then its session is exhausted.

    *session* may be a function that gives it, if tools are made before their session.
    """

    names = ("spawn",)

    def __init__(self, session: "Session | Callable[[], Session]", agent: Agent, **amounts: Unpack[Amounts]) -> None:
        self._session = session
        self._agent = agent
        self._amounts = amounts

    def spawn(self, task: str) -> dict[str, Any]:
        """
        Let a sub-agent work on a task of its own, and give its answer. Tell it all it needs: it knows nothing else.
        """
        parent = self._session() if callable(self._session) else self._session
        if parent.id.count("/") >= MAX_DEPTH:
            raise ToolFailure("permission", f"sub-agents are at most {MAX_DEPTH} deep")
        amounts, left = self._amounts, seconds_left()
        if left is not None:
            amounts = {**amounts, "max_elapsed": min(left, amounts.get("max_elapsed") or left)}
        try:
            child = parent.child(f"agent-{secrets.token_hex(4)}", **amounts)
        except SessionError as error:
            reason = f"no budget for a sub-agent: {error}"
            raise ToolFailure("precondition", reason, "Do it yourself.", retryable=False) from error
        with child:
            answer = str(self._agent(task, child))
            used = child.ledger.progress.get("calls_used", 0)
            return {"answer": answer, "calls_used": used, "ended_by": child.exhausted}


class Outbox(ToolSet):
    """
    Hands what the agent says to *deliver*, a function of the text.
    """

    names = ("message",)

    def __init__(self, deliver: Callable[[str], object]) -> None:
        self._deliver = deliver

    def message(self, text: Annotated[str, MinLen(1), MaxLen(16_384)]) -> dict[str, Any]:
        """
        Send the user a short message while you go on working; nobody answers it.
        """
        self._deliver(sanitise(text).strip())
        return {"delivered": True}
