"""
`guardrails store`: list what a store keeps, show one state, drop some.
"""

import time

from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from guardrails.cli.group import Commands, examples
from guardrails.cli.text.printing import FOUND, INTERRUPTED, fail, print_json, printable


if TYPE_CHECKING:
    from collections.abc import Iterator

    from guardrails.stores.base import Kept, Stored


SHOWN: Final = 100
"""Lines of a list, unless it is said otherwise."""
ALIKE: Final = 1_000
"""Keys among which one that was mistyped is looked for."""

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

    from .opened import messages_of, name_of, opened
    from .shown import line_of, list_text

    before = _before(idle)
    with opened(place, namespace) as kept, _interruptible("nothing was changed"):
        counted = _Counted(quiet=quiet or as_json)
        found = (one for one in counted.through(kept.entries(prefix)) if before is None or one.changed_ms < before)
        latest = nlargest(limit, found, key=_changed) if limit else sorted(found, key=_changed, reverse=True)
        messages, now = messages_of(place), _now()
        lines = [line_of(one, now, messages) for one in latest]
        whole, name = len(kept), name_of(kept, place)
    if as_json:
        print_json({"store": name, "states": whole, "shown": len(lines), "entries": lines})
        return
    if lines:
        typer.echo(list_text(lines))
    more = f", {whole:,} in all" if whole != len(lines) else ""
    typer.echo(f"{_states(len(lines))}{more}", err=True)


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
    from .opened import messages_of, name_of, opened
    from .shown import all_of, all_text

    with opened(place, namespace) as kept:
        found = kept.read(key)
        if found is None:
            _tell_of_none(kept, name_of(kept, place), key)
        said = all_of(found, _now(), messages_of(place))
    print_json(said) if as_json else typer.echo(all_text(said))
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
    from guardrails.offline.figures import plural

    from .opened import messages_of, name_of, opened

    with opened(place, namespace) as kept:
        wanted, messages = list(dict.fromkeys(keys)), messages_of(place)
        for key in wanted:
            if key not in messages and kept.read(key) is None:
                _tell_of_none(kept, name_of(kept, place), key)
        named = len(wanted)
        wanted = list(dict.fromkeys([*wanted, *(child for key in wanted for child in _children(kept, key))]))
        talks = [key for key in wanted if key in messages]
        also = f", {plural(len(wanted) - named, 'child', 'children')}" if len(wanted) > named else ""
        if talks:
            also += f", and {plural(sum(messages[key] for key in talks), 'message')} of {plural(len(talks), 'conversation')}"
        _confirm(f"forget {_states(named)} of `{place}`{also}; each starts afresh", yes=yes)
        for key in talks:
            # First: those of a newer version are refused, and then nothing is dropped.
            _forget_conversation(place, key)
        for key in wanted:
            kept.forget(key)
    _done(wanted, len(wanted), "forgotten", as_json=as_json)


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
    from .opened import name_of, opened

    before = _before(idle)
    with opened(place, namespace) as kept:
        counted = _Counted(quiet=quiet or as_json)
        if not yes:
            idle_ones = counted.through(kept.entries(prefix))
            many = sum(one.changed_ms < before and (scopes or not one.key.startswith("/")) for one in idle_ones)
            _confirm(
                f"drop {_states(many)} of `{name_of(kept, place)}` that were idle for {idle}; each starts afresh",
                yes=yes,
            )
        with _interruptible("what was not dropped yet stays"):
            dropped = kept.prune(idle, scopes=scopes, prefix=prefix, progress=counted.tell)
    _done(None, dropped, "dropped", as_json=as_json)


class _Counted:
    """
    Tells how far long work has come.
    """

    def __init__(self, *, quiet: bool) -> None:
        from guardrails.cli.text.progress import Ticker

        self._ticker = Ticker(quiet=quiet)

    def through(self, entries: "Iterator[Stored]") -> "Iterator[Stored]":
        for count, one in enumerate(entries, 1):
            self.tell(count, "read")
            yield one

    def tell(self, count: int, what: str = "dropped") -> None:
        if self._ticker.due():
            self._ticker.tell(f"{_states(count)} {what}")


class _interruptible:  # noqa: N801  read as a statement
    def __init__(self, said: str) -> None:
        self._said = said

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            fail(f"interrupted: {self._said}", INTERRUPTED)


def _before(idle: Any) -> Any:
    """
    The time since which what was idle for *idle* has not changed. Returns None if nobody said how long.
    """
    from guardrails.core.values.units import duration_ms

    if idle is None:
        return None
    try:
        return _now() - duration_ms(idle)
    except ValueError as error:
        fail(f"--idle: {error}")


def _now() -> int:
    return round(time.time() * 1000)


def _changed(one: "Stored") -> int:
    return one.changed_ms


def _states(count: int) -> str:
    from guardrails.offline.figures import plural

    return plural(count, "state")


def _confirm(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not _at_terminal():
        fail(f"this would {what}. Nothing was done: add --yes to do it")
    if not typer.confirm(printable(f"This will {what}. Go on?")):
        fail("nothing was done", FOUND)


def _at_terminal() -> bool:
    import sys

    return sys.stdin.isatty()


def _tell_of_none(kept: "Kept", name: str, key: str) -> NoReturn:
    from difflib import get_close_matches
    from itertools import islice

    near = get_close_matches(key, [one.key for one in islice(kept.entries(key[:1]), ALIKE)], 1)
    mean = f", did you mean `{near[0]}`?" if near else ":"
    fail(f"`{name}` keeps no `{key}`{mean} `guardrails store ls {name}` lists what it keeps")


def _children(kept: "Kept", key: str) -> "Iterator[str]":
    """
    Returns the keys of all children of the session *key*, closed ones too: their names are free again.
    """
    from guardrails.core.values.names import SCOPES

    if not key.startswith(SCOPES):
        yield from [one.key for one in kept.entries(f"{key}/")]


def _forget_conversation(place: str, key: str) -> None:
    from guardrails.agent.conversations import Conversations

    with Conversations(place) as conversations:
        conversations.forget(key)


def _done(keys: list[str] | None, count: int, how: str, *, as_json: bool) -> None:
    if as_json:
        print_json({how: count} | ({} if keys is None else {"keys": keys}))
    else:
        typer.echo(f"{_states(count)} {how}")
