"""
List, show and drop the states that a store keeps.

\b
Examples:
  guardrails store ls state.db
  guardrails store show redis://localhost:6379 session-1
"""

import time

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.core.values.types import MICRO
from guardrails.core.values.units import duration_ms
from guardrails.offline.figures import plural

from . import commands
from .console import Json, echo, fail, print_json, table
from .console import show as document


if TYPE_CHECKING:
    from guardrails.stores import Stored
    from guardrails.stores.persistence import PersistentStore

SHOWN: Final = 100
"""Lines of a list, unless it is said otherwise."""
COLUMNS: Final = ("key", "kind", "idle_s", "calls", "cost_usd", "tokens", "open", "ended_by")
"""Of a list; figures of a state that cannot be read are not there."""

store = commands(help=__doc__)
Place = Annotated[str, typer.Argument(metavar="STORE", help="The file of a SqliteStore, or the URL of a server.")]
Namespace = Annotated[str, typer.Option(metavar="NAME", help="The namespace of a server.")]
Prefix = Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin with it; scopes begin with `/`.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it.")]


@store.command()
def ls(
    place: Place,
    prefix: Prefix = "",
    idle: Annotated[int, typer.Option(metavar="TIME", parser=duration_ms, help="Only what is idle for so long.")] = 0,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="Show at most so many lines; 0 shows all.")] = SHOWN,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> None:
    """
    List sessions, children and scopes, the latest changed first.

    \b
    Examples:
      guardrails store ls state.db
      guardrails store ls redis://localhost:6379 --idle 30d --json
    """
    before = _now() - idle
    with _opened(place, namespace) as states:
        entries = (one for one in states.entries(prefix) if not idle or one.changed_ms < before)
        latest = nlargest(limit or len(states), entries, key=lambda one: one.changed_ms)
        whole, lines = len(states), [state_of(one) for one in latest]
    if as_json:
        print_json({"store": states.place, "states": whole, "shown": len(lines), "entries": lines})
        return
    if lines:
        table([COLUMNS, *([str(line.get(name, "")) for name in COLUMNS] for line in lines)])
    echo(plural(len(lines), "state") + (f", {whole:,} in all" if whole != len(lines) else ""), err=True)


@store.command()
def show(
    place: Place,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key, as `ls` lists it.")],
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> bool:
    """
    Show all that is kept of one session or scope, but for arguments.

    Exit code 1: it cannot be read by this version.

    \b
    Examples:
      guardrails store show state.db session-1
      guardrails store show state.db session-1 --json
    """
    with _opened(place, namespace) as states:
        line = state_of(_stored(states, key), whole=True)
    document(line, as_json=as_json)
    return line["unreadable"] is not None


@store.command()
def forget(
    place: Place,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys, as `ls` lists them.")],
    yes: Yes = False,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> None:
    """
    Drop sessions or scopes: each starts afresh, with all of its budget.

    Children and messages go with their session.

    \b
    Examples:
      guardrails store forget state.db session-1
      guardrails store forget state.db session-1 session-2 --yes
    """
    from guardrails.agent.conversations import Conversations
    from guardrails.stores.places import is_url

    with _opened(place, namespace) as states, ExitStack() as stack:
        conversations = None if is_url(place) else stack.enter_context(Conversations(place))
        talks = {one.id for one in conversations.listed()} if conversations else set()
        for key in {*keys} - talks:
            _stored(states, key)
        # Closed children too: their names are free again.
        wanted = list(dict.fromkeys([*keys, *(one.key for key in keys for one in states.entries(f"{key}/"))]))
        if not yes:
            also = ", with its messages" if talks.intersection(wanted) else ""
            fail(f"this would forget {plural(len(wanted), 'state')} of `{states.place}`{also}: add --yes to do it")
        for key in wanted:
            if conversations and key in talks:
                conversations.forget(key)
            states.forget(key)
    document({"forgotten": len(wanted), "keys": wanted}, as_json=as_json)


@store.command()
def prune(
    place: Place,
    idle: Annotated[int, typer.Option(metavar="TIME", parser=duration_ms, help="Drop what is idle for so long: 30d.")],
    prefix: Prefix = "",
    scopes: Annotated[bool, typer.Option("--scopes", help="Drop scopes too: their budgets start afresh.")] = False,
    yes: Yes = False,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> None:
    """
    Drop all sessions that were idle for long.

    Messages of conversations stay. Exit code 130: interrupted, the rest stays.

    \b
    Examples:
      guardrails store prune state.db --idle 30d
      guardrails store prune state.db --idle 12h --prefix test- --yes
    """
    with _opened(place, namespace) as states:
        if not yes:
            fail(f"this would drop states of `{states.place}`, those that `ls --idle` lists: add --yes to do it")
        dropped = states.prune(idle / 1000, scopes=scopes, prefix=prefix)
    document({"dropped": dropped}, as_json=as_json)


@contextmanager
def _opened(place: str, namespace: str) -> "Iterator[PersistentStore]":
    """
    The store at *place*, a path or a URL. Ends the command if there is none.
    """
    from guardrails.stores.places import is_url, store_at

    # It would be made.
    if not is_url(place) and not Path(place).is_file():
        fail(f"`{place}` is no file: name the file of a SqliteStore, such as state.db, or the URL of a server")
    with closing(store_at(place, namespace=namespace)) as states:
        yield states


def _stored(states: "PersistentStore", key: str) -> "Stored":
    stored = states.read(key)
    if stored is None:
        # Without the password that a URL may hold.
        fail(f"`{states.place}` keeps no `{key}`: `guardrails store ls {states.place}` lists what it keeps")
    return stored


def _now() -> int:
    return round(time.time() * 1000)


def state_of(stored: "Stored", *, whole: bool = False) -> dict[str, Any]:
    """
    Returns the fields of *stored* in a list and, if the *whole* is asked for, all else that is kept in it.
    """
    from guardrails.core.guards.budget import unpriced
    from guardrails.core.packing import unpack
    from guardrails.core.values.errors import StateUnreadable
    from guardrails.core.values.names import SCOPES

    key, packed, idle = stored.key, stored.packed, max(0, _now() - stored.changed_ms)
    kind = "scope" if key.startswith(SCOPES) else "child" if "/" in key else "session"
    line: dict[str, Any] = {"key": key, "kind": kind, "version": packed[0] if packed else None, "bytes": len(packed)}
    line |= {"changed_ms": stored.changed_ms, "idle_s": idle // 1000, "unreadable": None}
    try:
        state = unpack(packed)
    except StateUnreadable as error:
        return line | {"unreadable": error.reason}
    by, why = (None, None) if state.exhausted is None else state.exhausted[:2]
    line |= {"calls": state.calls, "cost_usd": state.cost / MICRO, "tokens": state.tokens, "open": len(state.pending)}
    line |= {"ended_by": by, "closed": state.closed}
    if whole:
        line |= {"events": state.n, "unpriced": unpriced(state), "held_cost_usd": state.held_cost / MICRO}
        line |= _of(state, "run", "started_ms", "now_ms", "turns", "held_tokens", "reserved", "limits", "own")
        window = (_of(one, "seq", "tool", "at_ms", "status") | {"error": one.error_type} for one in state.window)
        line |= {"ended_because": why, "window": [*window], "pending": []}
        for call in state.pending.values():
            waits = call.question and (call.question.code if call.stage == "parked" else "to be made again")
            more = {"cost_usd": call.cost / MICRO, "waits_for": waits}
            line["pending"].append(_of(call, "seq", "tool", "id", "expires_ms", "tokens") | more)
    return line


def _of(one: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names}
