"""
The descriptions that tools had when they were first seen, in a file that all processes of a user share.
"""

import hashlib
import json
import secrets
import shlex
import threading
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails.core.values.errors import StoreError
from guardrails.core.values.logs import log
from guardrails.stores.places import state_folder

from .changes import changed, said_of
from .words import cleaned, is_deep, visible


VERSION: Final = 1
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
        words = [Path(word).name for word in command if not word.startswith("-")][:2]
        name = " ".join(words) if url is None else url.partition("?")[0].rpartition("@")[2]
    return Server(key, visible(name))


def pins_file() -> str:
    """
    Returns the file of this user's pins, if no other file is named.
    """
    return str(Path(state_folder(), "mcp-pins.json"))


class Pins:
    """
    The descriptions that tools had when they were first seen, in the lock file *path*, which is JSON; None: in this process only.

    Safe in any number of threads. Of two processes that write at one moment the later one may undo what the other has seen for
    the first time. If the file cannot be used, the log says so, and what was known of it stays known in this process.
    """

    def __init__(self, path: str | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._path = path
        self._known: dict[str, Any] = {}
        """By the key of a server: its label, and its tools by name."""

    def look(self, server: Server, offered: Sequence[Mapping[str, Any]]) -> list[Seen]:
        """
        See the tools that *server* offers, as its list has them; those without a name of theirs are left out.

        A tool that is new is pinned. One that says something else than it did is held, and shown as it was. The first of two of
        one name counts.
        """
        with self._lock:
            try:
                self._known = self._read()
                found = self._looked(server, offered)
                self._write()
            except (OSError, ValueError) as error:
                log.warning(
                    "`%s` cannot be used, so changed tools are known in this process only: %s", self._path, error
                )
                self._path = None
                found = self._looked(server, offered)
            return found

    def reason(self, server: Server, tool: str) -> str | None:
        """
        Why *tool* is held now, an empty text if it is not. Returns None if that is not known.
        """
        with self._lock:
            try:
                known = self._read()
            except (OSError, ValueError):
                known = self._known
            pin = known.get(server.key, {}).get("tools", {}).get(tool)
            return None if pin is None else self._with_advice(pin["held"])

    def allow(self, key: str, tools: Sequence[str] = ()) -> list[str]:
        """
        Allow what the held *tools* of the server *key* say now; all of them if none is named. Returns their names.

        Raises StoreError if the file cannot be used.
        """
        with self._lock:
            own = self._usable().get(key, {}).get("tools", {})
            names = [name for name, pin in own.items() if pin["held"] and (not tools or name in tools)]
            for name in names:
                own[name] |= {"declared": own[name]["changed"] or own[name]["declared"], "changed": None, "held": ""}
            try:
                self._write()
            except OSError as error:
                raise StoreError(f"`{self._path}` cannot be used: {error}") from error
            return names

    def listed(self) -> list[Pin]:
        """
        All that is known, by label and tool. Raises StoreError if the file cannot be used.
        """
        with self._lock:
            found = [
                Pin(Server(key, one["label"]), name, pin["first_seen"], pin["declared"], pin["changed"], pin["held"])
                for key, one in self._usable().items()
                for name, pin in one["tools"].items()
            ]
        return sorted(found, key=lambda pin: (pin.server.label, pin.server.key, pin.tool))

    def _looked(self, server: Server, offered: Sequence[Mapping[str, Any]]) -> list[Seen]:
        known = self._known.setdefault(server.key, {"label": server.label, "tools": {}})["tools"]
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
            new = {"first_seen": int(self._clock()), "declared": said, "changed": None, "held": ""}
            pin = known.setdefault(name, new)
            parts = changed(pin["declared"], said)
            if parts:
                day = time.strftime("%Y-%m-%d", time.gmtime(pin["first_seen"]))
                held = f"its server changed its {' and '.join(parts)} since it was first seen on {day}"
                pin |= {"changed": said, "held": held}
                log.warning(
                    "`%s` of MCP server `%s` is held: %s (`guardrails mcp pins` shows it, `guardrails mcp allow` allows it)",
                    *(name[:64], server.label, held),
                )
            else:
                pin |= {"changed": None, "held": ""}
            shown = {key: one for key, one in tool.items() if key not in said} | (pin["declared"] if parts else said)
            found[name] = Seen(name, cleaned(shown), self._with_advice(pin["held"]))
        return list(found.values())

    def _usable(self) -> dict[str, Any]:
        try:
            self._known = self._read()
        except (OSError, ValueError) as error:
            raise StoreError(f"`{self._path}` cannot be used: {error}") from error
        return self._known

    def _read(self) -> dict[str, Any]:
        """
        Returns what the file holds. Raises OSError, or ValueError if it is no file of pins.
        """
        if self._path is None:
            return self._known
        try:
            found = json.loads(Path(self._path).read_bytes())
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict) or found.get("version") != VERSION or not all(_is_whole(found.get("servers"))):
            raise ValueError("it is damaged, or not a file of pins of this version")
        servers: dict[str, Any] = found["servers"]
        return servers

    def _write(self) -> None:
        if self._path is None:
            return
        path = Path(self._path).absolute()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"version": VERSION, "servers": self._known}, indent=1, sort_keys=True)
        if path.exists() and path.read_text() == text:
            return
        copy = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        copy.touch(0o600, exist_ok=False)
        try:
            copy.write_text(text)
            copy.replace(path)
        finally:
            copy.unlink(missing_ok=True)

    def _with_advice(self, held: str) -> str:
        if not held or self._path is None:
            return held
        named = "" if self._path == pins_file() else f" --pins {shlex.quote(self._path)}"
        return f"{held}; `guardrails mcp pins{named}` shows it"


def _is_whole(servers: Any) -> Iterator[bool]:
    yield isinstance(servers, dict)
    for server in servers.values():
        yield (
            isinstance(server, dict) and isinstance(server.get("label"), str) and isinstance(server.get("tools"), dict)
        )
        for pin in server["tools"].values():
            yield isinstance(pin, dict) and isinstance(pin.get("declared"), dict) and type(pin.get("first_seen")) is int
            yield isinstance(pin.get("held"), str) and isinstance(pin.get("changed"), dict | None)
