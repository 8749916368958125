"""
Which MCP servers there are: from a TOML or JSON file, or the mapping that was read from one.
"""

import json
import tomllib

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, ValidationError
from pydantic.dataclasses import dataclass

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.logs import log
from guardrails.core.values.units import duration_ms
from guardrails.hooks.results import mapping


Name = Annotated[str, Field(max_length=32, pattern="^[A-Za-z0-9](_?[A-Za-z0-9-])*_?$")]
"""A `__` would end it: it stands before the name of a tool."""
Text = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, BeforeValidator(lambda given: duration_ms(given) / 1000), Field(gt=0)]


@dataclass(frozen=True, kw_only=True)
class McpServer:
    """
    One server: *command* with *args* for one that is started here and spoken to over stdio, else *url* for one over HTTP.
    """

    name: Name
    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the few variables that a server gets by default (PATH, HOME, ...); never this process's own secrets."""
    cwd: Text | None = None
    url: Annotated[str, Field(pattern="^https?://")] | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout: Seconds = 30.0
    """Seconds until it has been started, greeted, and asked for its tools."""
    timeout: Seconds = 60.0
    """Seconds that one call may take."""
    pins: StrictBool = True
    """Whether a tool that changes what it says of itself is held."""

    @property
    def words(self) -> tuple[str, ...]:
        """
        The command with its arguments; none for a server over HTTP.
        """
        return () if self.command is None else (self.command, *self.args)


def read_servers(path: str | Path) -> list[McpServer]:
    """
    The servers in a TOML or JSON file, as `servers_of` reads them.

    Raises PolicyError with all mistakes, OSError if the file cannot be read.
    """
    path = Path(path)
    text = path.read_bytes()
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise PolicyError([f"{path.name}: {error}"]) from None
    return servers_of(document)


def servers_of(document: Any) -> list[McpServer]:
    """
    The servers under `[tools.mcp_servers.NAME]`, or under `mcp_servers` or `mcpServers` as other clients keep them.

    With `command` (and `args`) a server is started and spoken to over stdio, else it listens at `url`. An entry with
    neither is skipped, which the log says. Raises PolicyError with all mistakes.
    """
    whole = document if isinstance(document, Mapping) else {"mcpServers": document}
    tables = whole.get("mcpServers"), whole.get("mcp_servers"), mapping(whole.get("tools")).get("mcp_servers")
    table: Any = next((one for one in tables if one is not None), {})
    if not isinstance(table, Mapping):
        raise PolicyError(["MCP servers are a table of names"])
    servers: list[McpServer] = []
    mistakes: list[str] = []
    for name, given in table.items():
        place = f"mcp_servers.{name}"
        if not isinstance(given, Mapping):
            mistakes.append(f"{place}: a server is a table with `command` or `url`")
        elif gone := [key for key in ("network", "sandbox") if key in given]:
            mistakes.append(f"{place}.{gone[0]}: is gone; a `command` may begin with `bwrap` and its options")
        elif given.get("command") is None and given.get("url") is None:
            log.warning("MCP server `%s` has neither `command` nor `url`, so it is skipped", name)
        else:
            url = given.get("url") if given.get("command") is None else None
            try:
                servers.append(McpServer(**{**given, "name": name, "url": url}))
            except ValidationError as error:
                for one in error.errors():
                    where, why = ".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")
                    mistakes.append(f"{place}.{where}: {why}")
    if mistakes:
        raise PolicyError(mistakes)
    return servers
