"""
`guardrails store`: list what a store keeps, show one state, drop some. Arguments that wait for a person are not shown.
"""

import sys
import time

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from guardrails.cli.group import Commands, examples
from guardrails.cli.text.printing import FOUND, fail, failures_told, heading, print_json, printable, table
from guardrails.cli.text.progress import telling
from guardrails.offline.figures import plural


if TYPE_CHECKING:
    from guardrails.stores.base import Stored
    from guardrails.stores.persistence import PersistentStore

SHOWN: Final = 100
"""Lines of a list, unless it is said otherwise."""
ALIKE: Final = 1_000
"""Keys among which one that was mistyped is looked for."""
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_MESSAGES: Final = """
SELECT c.name, count(m.id) FROM conversations c LEFT JOIN messages m ON m.conversation = c.id GROUP BY c.id
"""

store = Commands(no_args_is_help=True)


@store.callback()
@examples("guardrails store ls state.db", "guardrails store show redis://localhost:6379 session-1")
def _about() -> None:
    """
    List, show and drop the states that a store keeps.
    """


Place = Annotated[str, typer.Argument(metavar="STORE", help="The file of a SqliteStore, or the URL of a server.")]
Namespace = Annotated[str, typer.Option(metavar="NAME", help="The namespace of a server.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")]
Prefix = Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin with it; scopes begin with `/`.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@store.command()
@examples("guardrails store ls state.db", "guardrails store ls redis://localhost:6379 --idle 30d --json")
def ls(
    place: Place,
    *,
    prefix: Prefix = "",
    idle: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only entries that nothing has changed for that long: 30d.")
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show at most so many lines, the latest changed first; 0 shows all.")
    ] = SHOWN,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """
    List the sessions, children and scopes of a store, the latest changed first.
    """
    from heapq import nlargest

    before = None if idle is None else _before(idle)
    with _opened(place, namespace) as kept, telling(quiet=quiet or as_json) as tell:
        found = (one for one in _read(kept, prefix, tell) if before is None or one.changed_ms < before)
        latest = nlargest(limit or len(kept), found, key=lambda one: one.changed_ms)
        messages, now = _messages_of(place), _now()
        lines = [line_of(one, now, messages) for one in latest]
        whole, name = len(kept), kept.place
    if as_json:
        print_json({"store": name, "states": whole, "shown": len(lines), "entries": lines})
        return
    if lines:
        headings = ("key", "kind", "version", "idle", "calls", "USD", "tokens", "open", "state")
        typer.echo(table([headings, *map(_cells, lines)], wide=True))
    typer.echo(plural(len(lines), "state") + (f", {whole:,} in all" if whole != len(lines) else ""), err=True)


@store.command()
@examples("guardrails store show state.db session-1", "guardrails store show state.db session-1 --json")
def show(
    place: Place,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key, as `ls` lists it.")],
    *,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> None:
    """
    Show all that is kept of one session or scope, but for arguments. Exit code 1: it cannot be read by this version.
    """
    with _opened(place, namespace) as kept:
        found = kept.read(key)
        if found is None:
            _tell_of_none(kept, key)
        said = _all_of(found, _now(), _messages_of(place))
    print_json(said) if as_json else typer.echo("\n".join(_lines(said)))
    if said["unreadable"]:
        raise typer.Exit(FOUND)


@store.command()
@examples("guardrails store forget state.db session-1", "guardrails store forget state.db session-1 session-2 --yes")
def forget(
    place: Place,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys, as `ls` lists them.")],
    *,
    yes: Yes = False,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> None:
    """
    Drop sessions or scopes: each starts afresh, with all of its budget. Children and messages go with their session.
    """
    with _opened(place, namespace) as kept:
        named, messages = dict.fromkeys(keys), _messages_of(place)
        for key in named:
            if key not in messages and kept.read(key) is None:
                _tell_of_none(kept, key)
        # Closed children too: their names are free again.
        children = [one.key for key in named if not key.startswith("/") for one in kept.entries(f"{key}/")]
        wanted = list(dict.fromkeys([*named, *children]))
        talks = [key for key in wanted if key in messages]
        also = f", {plural(len(wanted) - len(named), 'child', 'children')}" if len(wanted) > len(named) else ""
        if talks:
            also += f", and {plural(sum(messages[key] for key in talks), 'message')} of {plural(len(talks), 'conversation')}"
        _confirm(f"forget {plural(len(named), 'state')} of `{kept.place}`{also}; each starts afresh", yes=yes)
        if talks:
            from guardrails.agent.conversations import Conversations

            # First: those of a newer version are refused, and then nothing is dropped.
            with Conversations(place) as conversations:
                for key in talks:
                    conversations.forget(key)
        for key in wanted:
            kept.forget(key)
    many = len(wanted)
    print_json({"forgotten": many, "keys": wanted}) if as_json else typer.echo(f"{plural(many, 'state')} forgotten")


@store.command()
@examples(
    "guardrails store prune state.db --idle 30d", "guardrails store prune state.db --idle 12h --prefix test- --yes"
)
def prune(
    place: Place,
    *,
    idle: Annotated[str, typer.Option(metavar="TIME", help="Drop what nothing has changed for that long: 30d, 12h.")],
    prefix: Prefix = "",
    scopes: Annotated[bool, typer.Option("--scopes", help="Drop scopes too: their budgets start afresh.")] = False,
    yes: Yes = False,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """
    Drop all sessions that were idle for long; messages of conversations stay. Exit code 130: interrupted, the rest stays.
    """
    before = _before(idle)
    with _opened(place, namespace) as kept:
        if not yes:
            with telling(quiet=quiet or as_json) as tell:
                found = _read(kept, prefix, tell)
                many = sum(one.changed_ms < before and (scopes or not one.key.startswith("/")) for one in found)
            where = f"{plural(many, 'state')} of `{kept.place}`"
            _confirm(f"drop {where} that were idle for {idle}; each starts afresh", yes=yes)
        with telling(quiet=quiet or as_json) as tell:

            def progress(count: int) -> None:
                if tell is not None:
                    tell(f"{plural(count, 'state')} dropped")

            dropped = kept.prune(idle, scopes=scopes, prefix=prefix, progress=progress)
    print_json({"dropped": dropped}) if as_json else typer.echo(f"{plural(dropped, 'state')} dropped")


@contextmanager
def _opened(place: str, namespace: str) -> "Iterator[PersistentStore]":
    """
    The store at *place*, a path or a URL. Ends the command if there is none, or it fails.
    """
    from guardrails.stores.places import is_url, store_at

    # It would be made.
    if not is_url(place) and not Path(place).is_file():
        what = "is a folder" if Path(place).is_dir() else "is not there"
        fail(f"`{place}` {what}: name the file of a SqliteStore, such as state.db, or the URL of a server")
    with failures_told(), closing(store_at(place, namespace=namespace)) as kept:
        yield kept


def _messages_of(place: str) -> dict[str, int]:
    """
    Returns how many messages each conversation has in the file *place*, by id; empty if it keeps none.
    """
    import sqlite3

    from guardrails.stores.places import is_url
    from guardrails.stores.sqlite import explained

    if is_url(place):
        return {}
    try:
        with closing(sqlite3.connect(f"{Path(place).absolute().as_uri()}?mode=ro", uri=True)) as database:
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'conversations'").fetchone() is None:
                return {}
            return dict(database.execute(_MESSAGES).fetchall())
    except sqlite3.Error as error:
        raise explained(error, place, 0) from error


def _read(kept: "PersistentStore", prefix: str, tell: "Callable[[str], object] | None") -> "Iterator[Stored]":
    for count, one in enumerate(kept.entries(prefix), 1):
        if tell is not None:
            tell(f"{plural(count, 'state')} read")
        yield one


def _before(idle: str) -> int:
    """
    The time since which what was idle for *idle* has not changed.
    """
    from guardrails.core.values.units import duration_ms

    try:
        return _now() - duration_ms(idle)
    except ValueError as error:
        fail(f"--idle: {error}")


def _now() -> int:
    return round(time.time() * 1000)


def _confirm(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not _at_terminal():
        fail(f"this would {what}. Nothing was done: add --yes to do it")
    if not typer.confirm(printable(f"This will {what}. Go on?")):
        fail("nothing was done", FOUND)


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def _tell_of_none(kept: "PersistentStore", key: str) -> NoReturn:
    from difflib import get_close_matches
    from itertools import islice

    # Without the password that a URL may hold.
    name = kept.place
    near = get_close_matches(key, [one.key for one in islice(kept.entries(key[:1]), ALIKE)], 1)
    mean = f", did you mean `{near[0]}`?" if near else ":"
    fail(f"`{name}` keeps no `{key}`{mean} `guardrails store ls {name}` lists what it keeps")


def line_of(stored: "Stored", now_ms: int, messages: dict[str, int]) -> dict[str, Any]:
    """
    Returns the fields of *stored* in a list; *messages* are those of conversations, by id.
    """
    return _all_of(stored, now_ms, messages, whole=False)


def _all_of(stored: "Stored", now_ms: int, messages: dict[str, int], *, whole: bool = True) -> dict[str, Any]:
    """
    The same and, if the *whole* is asked for, all else that is kept in it.
    """
    from guardrails.core.guards.budget import unpriced
    from guardrails.core.packing import unpack
    from guardrails.core.values.errors import StateUnreadable
    from guardrails.core.values.names import SCOPES
    from guardrails.core.values.types import MICRO

    key, idle_ms = stored.key, max(0, now_ms - stored.changed_ms)
    said: dict[str, Any] = {
        "key": key,
        "kind": "scope"
        if key.startswith(SCOPES)
        else "conversation"
        if key in messages
        else "child"
        if "/" in key
        else "session",
        "version": stored.packed[0] if stored.packed else None,
        "bytes": len(stored.packed),
        "changed_ms": stored.changed_ms,
        "idle_s": idle_ms // 1000,
        "messages": messages.get(key),
        "unreadable": None,
    }
    try:
        state = unpack(stored.packed)
    except StateUnreadable as error:
        return said | {"unreadable": error.reason}
    by, why = (None, None) if state.exhausted is None else state.exhausted[:2]
    said |= {"calls": state.calls, "cost_usd": state.cost / MICRO, "tokens": state.tokens, "open": len(state.pending)}
    said |= {"ended_by": by, "closed": state.closed}
    if not whole:
        return said
    return said | {
        "run": state.run,
        "events": state.n,
        "started_ms": state.started_ms,
        "now_ms": state.now_ms,
        "turns": state.turns,
        "unpriced": unpriced(state),
        "held_cost_usd": state.held_cost / MICRO,
        "held_tokens": state.held_tokens,
        "reserved": state.reserved,
        "limits": state.limits,
        "own": state.own,
        "ended_because": why,
        "window": [
            {"seq": one.seq, "tool": one.tool, "at_ms": one.at_ms, "status": one.status, "error": one.error_type}
            for one in state.window
        ],
        "pending": [
            {
                "seq": one.seq,
                "tool": one.tool,
                "id": one.id,
                "expires_ms": one.expires_ms,
                "cost_usd": one.cost / MICRO,
                "tokens": one.tokens,
                "waits_for": one.question and (one.question.code if one.stage == "parked" else "to be made again"),
            }
            for one in state.pending.values()
        ],
    }


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    version = "" if line["version"] is None else str(line["version"])
    said = (line["key"], line["kind"], version, _idle(line["idle_s"]))
    if line["unreadable"]:
        return (*said, "", "", "", "", _condition(line))
    figures = f"{line['calls']:,}", f"{line['cost_usd']:.2f}", f"{line['tokens']:,}", f"{line['open']:,}"
    return (*said, *figures, _condition(line))


def _lines(said: dict[str, Any]) -> Iterator[str]:
    """
    All of a state for a person: a line for each field that has something to say.
    """
    yield heading(f"{said['key']}: {said['kind']}, {_condition(said)}, changed {_idle(said['idle_s'])} ago")
    for name, value in said.items():
        if isinstance(value, list) and value:
            yield heading({"pending": "Open calls", "window": "Latest calls"}[name])
            yield table([list(value[0]), *(["" if v is None else str(v) for v in one.values()] for one in value)])
        elif value not in (None, [], {}, "", False) and name not in ("key", "kind"):
            shown = ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, dict) else value
            yield printable(f"  {name}: {shown:,}" if isinstance(shown, int) else f"  {name}: {shown}")


def _condition(line: dict[str, Any]) -> str:
    from guardrails.core.packing import VERSION

    if line["unreadable"]:
        return "damaged" if line["version"] in (None, VERSION) else f"of version {line['version']}"
    return "closed" if line["closed"] else line["ended_by"] or "goes on"


def _idle(seconds: int) -> str:
    return next((f"{seconds // size}{unit}" for unit, size in _UNITS if seconds >= size), "0s")
