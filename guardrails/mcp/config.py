"""
Which MCP servers there are: from a TOML or JSON file, or the mapping that was read from one.
"""

import json
import re
import tomllib

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.logs import log
from guardrails.core.values.units import duration_ms


if TYPE_CHECKING:
    from guardrails.processes.sandbox import Name

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
MAX_FILE_BYTES: Final = 1_048_576
SANDBOXES: Final = ("auto", "bwrap", "none")
_KEYS: Final = frozenset(
    {"command", "args", "env", "cwd", "url", "headers", "connect_timeout", "timeout", "type", "transport", "pins"}
    | {"network", "sandbox"}
)
"""Those that are read; what clients keep beside them for themselves (`disabled`, `description`, ...) means nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """
    One server: *command* with *args* for one that is started here and spoken to over stdio, else *url* for one over HTTP.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the few variables that a server gets by default (PATH, HOME, ...); never this process's own secrets."""
    cwd: str | None = None
    network: bool = True
    """False: one that is started here is cut off the network, by a sandbox."""
    sandbox: "Name | None" = None
    """`auto`, `bwrap`: only its folder and a private /tmp can be written, no home is seen; `none`, None: files stay as they
    are."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, bool] = field(default_factory=dict)
    """What a client keeps beside them for itself, as far as it is on or off: `disabled`, `trust`, ..."""
    connect_timeout: float = 30.0
    """Seconds until it has been started, greeted, and asked for its tools."""
    timeout: float = 60.0
    """Seconds that one call may take."""
    pins: bool = True
    """Whether a tool that changes what it says of itself is held."""

    def __repr__(self) -> str:
        # Variables and headers hold keys.
        return f"McpServer({self.name!r}, {self.command or self.url!r})"


def read_servers(path: str | Path, *, any_name: bool = False) -> list[McpServer]:
    """
    The servers in a TOML or JSON file, as `servers_of` reads them; *any_name*: of no use in names of tools, so of any form.

    Raises PolicyError with all mistakes, OSError if the file cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise PolicyError([f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes"])
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise PolicyError([f"{path.name}: {error}"]) from None
    return servers_of(document, any_name=any_name)


def servers_of(document: Any, *, any_name: bool = False) -> list[McpServer]:
    """
    The servers under `[tools.mcp_servers.NAME]`, or under `mcp_servers` or `mcpServers` as other clients keep them.

    With `command` (and `args`) a server is started and spoken to over stdio, else it listens at `url`. An entry with
    neither is skipped, which the log says. Raises PolicyError with all mistakes.
    """
    found = _table(document)
    mistakes = [
        f"mcp_servers.{name}: a server's name is 1 to 32 letters, digits, `_` or `-`, without `__`"
        for name in map(str, found)
        if not any_name and (NAME.fullmatch(name) is None or "__" in name)
    ]
    servers = [_server(str(name), said, mistakes) for name, said in found.items()]
    if mistakes:
        raise PolicyError(mistakes)
    return [server for server in servers if server is not None]


def _table(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise PolicyError(["MCP servers are a table of names"])
    tools = document.get("tools")
    places = [document.get("mcpServers"), document.get("mcp_servers")]
    if isinstance(tools, Mapping):
        places.append(tools.get("mcp_servers"))
    for place in places:
        if place is not None:
            if not isinstance(place, Mapping):
                raise PolicyError(["MCP servers are a table of names"])
            return place
    return {}


def _server(name: str, said: Any, mistakes: list[str]) -> McpServer | None:
    at = f"mcp_servers.{name}"
    if not isinstance(said, Mapping):
        mistakes.append(f"{at}: a server is a table with `command` or `url`")
        return None
    before = len(mistakes)
    command, url = (_text(said, key, at, mistakes) for key in ("command", "url"))
    cwd = _text(said, "cwd", at, mistakes)
    args = said.get("args", [])
    if not isinstance(args, list) or not all(isinstance(arg, str) and "\0" not in arg for arg in args):
        mistakes.append(f"{at}.args: a list of texts")
    env, headers = (_texts(said, key, at, mistakes) for key in ("env", "headers"))
    sandbox, network = said.get("sandbox"), said.get("network", True)
    if sandbox is not None and sandbox not in SANDBOXES:
        mistakes.append(f"{at}.sandbox: one of {', '.join(SANDBOXES)}")
    if not isinstance(network, bool):
        mistakes.append(f"{at}.network: true or false")
    if command is None and url is not None and (sandbox is not None or network is False):
        mistakes.append(f"{at}: `sandbox` and `network: false` are for a server that is started here, by `command`")
    if sandbox == "none" and network is False:
        mistakes.append(f"{at}: `network: false` takes a sandbox, so not `sandbox: none`")
    timeouts = {key: _seconds(said, key, at, mistakes) for key in ("connect_timeout", "timeout") if key in said}
    if command is None and url is not None and not url.startswith(("http://", "https://")):
        mistakes.append(f"{at}.url: `{url}` is no http or https URL")
    pins = said.get("pins", True)
    if not isinstance(pins, bool):
        mistakes.append(f"{at}.pins: true or false")
    if len(mistakes) > before:
        return None
    if command is None and url is None:
        log.warning("MCP server `%s` has neither `command` nor `url`, so it is skipped", name)
        return None
    return McpServer(
        name=name,
        command=command,
        args=tuple(args),
        env=env,
        cwd=cwd,
        network=network,
        sandbox=sandbox,
        url=None if command is not None else url,
        headers=headers,
        pins=pins,
        switches={str(key): value for key, value in said.items() if isinstance(value, bool) and key not in _KEYS},
        **timeouts,
    )


def _text(said: Mapping[str, Any], key: str, at: str, mistakes: list[str]) -> str | None:
    value = said.get(key)
    if value is None or (isinstance(value, str) and value and "\0" not in value):
        return value
    mistakes.append(f"{at}.{key}: a text that is not empty")
    return None


def _texts(said: Mapping[str, Any], key: str, at: str, mistakes: list[str]) -> dict[str, str]:
    value = said.get(key, {})
    if isinstance(value, Mapping) and all(isinstance(one, str) for pair in value.items() for one in pair):
        return dict(value)
    mistakes.append(f"{at}.{key}: a table of texts")
    return {}


def _seconds(said: Mapping[str, Any], key: str, at: str, mistakes: list[str]) -> float:
    try:
        made = duration_ms(said[key]) / 1000
    except (TypeError, ValueError) as error:
        mistakes.append(f"{at}.{key}: {error}")
        return 0.0
    if made <= 0:
        mistakes.append(f"{at}.{key}: more than 0")
    return made
