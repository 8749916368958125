"""
The lock file of MCP tools: the hash of what each tool said of itself when it was first seen. A tool that says something else is held.
"""

import hashlib
import json
import re

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from guardrails.core.text.control import visible
from guardrails.core.values.errors import StoreError
from guardrails.core.values.logs import log
from guardrails.stores.places import state_folder, write_whole


Pinned = dict[str, dict[str, Annotated[list[str], Field(min_length=1, max_length=2)]]]
"""Hashes by server and tool: of what the tool said first, and behind it of what it says now, if it is held for that."""
_PINNED: Final = TypeAdapter(Pinned)
WHY: Final = "it says something else of itself than when it was first seen; `guardrails mcp pins` shows it"
_PARTS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
_DATE: Final = r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
_TIME: Final = re.compile(rf"(?<![\d.:])(?:{_DATE}(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?|{_CLOCK})(?![\d:]|\.\d)")
"""Some descriptions say what time it is. Addresses with their ports, and other numbers, are no time."""


def server_of(command: Sequence[str], url: str | None = None, name: str | None = None) -> str:
    """
    The name under which the server that *command* starts, or without one that is at *url*, is pinned: words for a person, or the *name* that
    a file of servers gives it, and a hash. Another command, other arguments or another address make it another server.
    """
    digest = hashlib.sha256(json.dumps([*command] or ["url", url]).encode()).hexdigest()[:16]
    if name is None:
        # Arguments may hold keys: the program, and the first word that is no option, are enough to know it by.
        words = [Path(word).name for word in command if not word.startswith("-")][:2]
        name = " ".join(words) or (url or "").partition("?")[0].rpartition("@")[2]
    return f"{visible(name)} {digest}"


def pins_file() -> str:
    """
    Returns the lock file of this user, if no other file is named.
    """
    return str(Path(state_folder(), "mcp-tools.json"))


def by_name(listed: Iterable[Any]) -> dict[str, Any]:
    """
    Returns the tools that a server *listed* by their names. Of two of one name the first counts; what has no name is none.
    """
    tools: dict[str, Any] = {}
    for one in listed:
        if isinstance(one, dict) and type(one.get("name")) is str:
            tools.setdefault(one["name"], one)
    return tools


class Pins:
    """
    The lock file *path*, which is JSON; None: in this process only.

    It is of one event loop. Of two processes that write at one moment the later one may undo what the other has seen for the
    first time. If the file cannot be used, the log says so, and what was known of it stays known in this process.
    """

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._known: Pinned = {}

    def look(self, server: str, offered: Collection[Any]) -> dict[str, str]:
        """
        Pin those of the tools that *server* offers that are new. Returns why each tool is held that says something else than it did,
        also of those that it does not offer now.
        """
        try:
            self._known = self.read()
            if self._see(server, offered):
                self._write()
        except (OSError, StoreError) as error:
            log.warning("changed tools are known in this process only: %s", error)
            self._path = None
            self._see(server, offered)
        return {name: WHY for name, pin in self._known[server].items() if pin[1:]}

    def _see(self, server: str, offered: Iterable[Any]) -> bool:
        """
        Pin and hold. Returns whether that is news.
        """
        before, pins = json.dumps(self._known), self._known.setdefault(server, {})
        for name, tool in by_name(offered).items():
            digest = _digest(tool)
            pins[name] = [*dict.fromkeys((pins.get(name, [digest])[0], digest))]
        return json.dumps(self._known) != before

    def allow(self, server: str, tools: Collection[str] = ()) -> list[str]:
        """
        Pin what the held *tools* of the servers whose names begin with *server* say now, all of them if none is named. Returns their
        names. Raises StoreError or OSError if the file cannot be used.
        """
        self._known = self.read()
        named = [own for key, own in self._known.items() if f"{key} ".startswith(f"{server} ")]
        held = [(own, name) for own in named for name in own if own[name][1:] and (not tools or name in tools)]
        for own, name in held:
            own[name] = own[name][1:]
        self._write()
        return [name for _, name in held]

    def read(self) -> Pinned:
        """
        All that is pinned. Raises StoreError if the file cannot be used.
        """
        if self._path is None:
            return self._known
        try:
            return _PINNED.validate_json(Path(self._path).read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StoreError(f"`{self._path}` cannot be used: {error}") from error

    def _write(self) -> None:
        if self._path is not None:
            Path(self._path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(self._known, indent=1, sort_keys=True).encode(), 0o600)


def _digest(tool: Mapping[str, Any]) -> str:
    text = json.dumps(_plain({part: tool[part] for part in _PARTS if tool.get(part) is not None}))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """
    *value* without its times, and without the order of members and of plain values: some servers make lists of sets. The place of
    a schema in a list may be what it is for.
    """
    if isinstance(value, Mapping):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        made = [_plain(one) for one in value]
        return made if any(isinstance(one, dict | list) for one in made) else sorted(made, key=json.dumps)
    return _TIME.sub("<time>", value) if isinstance(value, str) else value
