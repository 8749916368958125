"""
The descriptions that tools had when they were first seen, in a file that all processes of a user share.
"""

import hashlib
import json
import os
import shlex
import sqlite3
import threading
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, Final, NamedTuple

from guardrails.core.values.errors import StoreError
from guardrails.core.values.logs import log
from guardrails.stores.folders import state_folder

from .changes import changed, said_of
from .database import left_in, opened, rows, transaction
from .words import cleaned, is_deep, looks, visible


MAX_DECLARED: Final = 1 << 20
"""Characters of one declaration; a longer one is left out of the list."""


class Server(NamedTuple):
    """
    Which server it is: *key* for us, *label* for a person.
    """

    key: str
    label: str


class Seen(NamedTuple):
    """
    One tool of a list: what is *shown* of it, and why it is *held*; an empty text if it is not.
    """

    name: str
    shown: dict[str, Any]
    held: str


class Pin(NamedTuple):
    """
    One tool in the file.
    """

    server: Server
    tool: str
    first_seen: int
    """Seconds since 1970."""
    declared: dict[str, Any]
    changed: dict[str, Any] | None
    """What it says now, if that is held."""
    reason: str


def server_of(command: Sequence[str] = (), url: str | None = None, name: str | None = None) -> Server:
    """
    The server that *command* starts or that is at *url*; *name* is what a file of servers calls it.

    Another command, other arguments or another address make it another server, which is seen for the first time.
    """
    told = json.dumps([*command] if url is None else ["url", url])
    key = hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()[:16]
    if name is None:
        # Arguments may hold keys: the program, and the first word that is no option, are enough to know it by.
        words = [os.path.basename(word) for word in command if not word.startswith("-")][:2]  # noqa: PTH119
        name = " ".join(words) if url is None else url.partition("?")[0].rpartition("@")[2]
    return Server(key, visible(name))


def pins_file() -> str:
    """
    Returns the file of this user's pins, if no other file is named.
    """
    return os.path.join(state_folder(), "mcp-pins.db")  # noqa: PTH118


class Pins:
    """
    The descriptions that tools had when they were first seen, in the file *path*; None: in this process only.

    Safe in any number of threads and processes. If the file cannot be used, the log says so. New descriptions are then
    kept in this process, beside those that can be read of the file.
    """

    def __init__(self, path: str | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._latest: dict[str, list[tuple[Any, ...]]] = {}
        """The rows of each server, as they were left here."""

    def look(self, server: Server, offered: Sequence[Mapping[str, Any]]) -> list[Seen]:
        """
        See the tools that *server* offers, as its list has them; those without a name of theirs are left out.

        A tool that is new is pinned. One that says something else than it did is held, and shown as it was. So is a new
        one whose name looks like that of another. The first of two of one name counts.
        """
        with self._lock:
            try:
                with self._changing() as database:
                    return self._looked(database, server, offered)
            except (sqlite3.Error, OSError) as error:
                if self._path is None:
                    raise
                log.warning(
                    "`%s` cannot be used, so changed tools are known in this process only: %s", self._path, error
                )
                self._fall_back()
                with self._changing() as database:
                    return self._looked(database, server, offered)

    def reason(self, server: Server, tool: str) -> str | None:
        """
        Why *tool* is held now, an empty text if it is not. Returns None if that is not known.
        """
        with self._lock, suppress(sqlite3.Error, OSError), self._changing() as database:
            row = database.execute(
                "SELECT reason FROM pins WHERE server = ? AND tool = ?", (server.key, _stored(tool))
            ).fetchone()
            return None if row is None else self._with_advice(row[0])
        return None

    def allow(self, key: str, tools: Sequence[str] = ()) -> list[str]:
        """
        Allow what the held *tools* of the server *key* say now; all of them if none is named. Returns their names.

        Raises StoreError if the file cannot be used.
        """
        with self._lock, self._told(), self._changing() as database:
            held = database.execute("SELECT tool FROM pins WHERE server = ? AND reason != ''", (key,)).fetchall()
            names = [tool for (tool,) in held if not tools or tool in map(_stored, tools)]
            database.executemany(
                "UPDATE pins SET declared = coalesce(changed, declared), changed = NULL, reason = '' "
                "WHERE server = ? AND tool = ?",
                [(key, tool) for tool in names],
            )
            return [json.loads(tool) for tool in names]

    def listed(self) -> list[Pin]:
        """
        All that is known, by label and tool. Raises StoreError if the file cannot be used.
        """
        with self._lock, self._told(), self._changing() as database:
            return [_pin(row) for row in rows(database)]

    def close(self) -> None:
        """
        Close the file.
        """
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _looked(self, database: sqlite3.Connection, server: Server, offered: Sequence[Mapping[str, Any]]) -> list[Seen]:
        known = {pin.tool: pin for pin in map(_pin, rows(database, server.key))}
        alike: dict[str, str] = {}
        for seen in known:
            alike.setdefault(looks(seen), seen)
        found: dict[str, Seen] = {}
        for tool in offered:
            name = tool.get("name")
            if not isinstance(name, str) or name in found:
                if isinstance(name, str):
                    log.warning("MCP server `%s` lists two tools `%s`; the first counts", server.label, name[:64])
                continue
            said = said_of(tool)
            if is_deep(tool) or len(json.dumps(said)) > MAX_DECLARED:
                log.warning("`%s` of MCP server `%s` says too much of itself; it is left out", name[:64], server.label)
                continue
            was = known.get(name)
            like = alike.setdefault(looks(name), name)
            if was is None:
                held = "" if like == name else f"its name looks like that of `{like[:64]}`, which was seen before it"
                self._put(database, server, name, said, None, held)
            else:
                held = self._compared(database, server, name, said, was)
            shown = {key: one for key, one in tool.items() if key not in said} | (
                was.declared if was and held else said
            )
            found[name] = Seen(name, cleaned(shown), self._with_advice(held))
            if held:
                log.warning(
                    "`%s` of MCP server `%s` is held: %s (`guardrails mcp pins` shows it, `guardrails mcp allow` allows it)",
                    name[:64],
                    server.label,
                    held,
                )
        self._latest[server.key] = rows(database, server.key)
        return list(found.values())

    def _compared(self, database: sqlite3.Connection, server: Server, name: str, said: dict[str, Any], was: Pin) -> str:
        before, now, why = was.declared, was.changed, was.reason
        parts = changed(before, said)
        if not parts and now is None:
            # A look-alike stays held for its name.
            return why
        held = ""
        if parts:
            day = time.strftime("%Y-%m-%d", time.gmtime(was.first_seen))
            held = f"its server changed its {' and '.join(parts)} since it was first seen on {day}"
        if held != why or (now or before) != said:
            self._put(database, server, name, before, said if held else None, held)
        return held

    def _put(
        self,
        database: sqlite3.Connection,
        server: Server,
        name: str,
        declared: dict[str, Any],
        now: dict[str, Any] | None,
        why: str,
    ) -> None:
        database.execute(
            "INSERT INTO pins (server, label, tool, first_seen, declared, changed, reason) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (server, tool) DO UPDATE SET label = excluded.label, changed = excluded.changed, "
            "reason = excluded.reason",
            (
                server.key,
                server.label,
                _stored(name),
                int(self._clock()),
                json.dumps(declared),
                None if now is None else json.dumps(now),
                why,
            ),
        )

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """
        The file in one transaction.
        """
        if self._database is None:
            self._database = opened(self._path)
        with transaction(self._database) as database:
            yield database

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"`{self._path}` cannot be used: {error}") from error

    def _fall_back(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
        found = chain(*self._latest.values(), filter(_is_whole, left_in(self._path or "")))
        left = {(row[0], row[2]): row for row in found}
        self._database, self._path = opened(None), None
        self._database.executemany("INSERT INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)", left.values())

    def _with_advice(self, held: str) -> str:
        if not held or self._path is None:
            return held
        named = "" if self._path == pins_file() else f" --pins {shlex.quote(self._path)}"
        return f"{held}; `guardrails mcp pins{named}` shows it"


def _pin(row: tuple[Any, ...]) -> Pin:
    """
    The pin of a *row*. Raises sqlite3.DatabaseError if it is damaged.
    """
    key, label, tool, seen, declared, now, why = row
    try:
        made = Pin(Server(key, label), json.loads(tool), seen, json.loads(declared), now and json.loads(now), why)
    except (ValueError, TypeError, RecursionError):
        raise sqlite3.DatabaseError("a row of it is damaged") from None
    if not isinstance(made.declared, dict) or not isinstance(made.tool, str) or type(seen) is not int:
        raise sqlite3.DatabaseError("a row of it is damaged")
    return made


def _is_whole(row: tuple[Any, ...]) -> bool:
    with suppress(sqlite3.Error):
        return bool(_pin(row))
    return False


def _stored(name: str) -> str:
    # A name may hold half a surrogate pair, which SQLite does not take.
    return json.dumps(name)
