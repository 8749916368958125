"""
The tools of all configured MCP servers, in a registry beside an agent's own.
"""

import asyncio

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal, Self

from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log
from guardrails.policy.tools import Registry

from .config import McpServer
from .connection import Connection
from .pins.pins import Pins, Server, server_of
from .results import on_wire, tools_of, value_of


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import Tool as McpTool


class McpTools:
    """
    Connects *servers* and keeps their tools in *registry*, as `{server}__{tool}`; an asynchronous context manager.

        async with McpTools(read_servers("agent.toml")) as mcp:
            envelope = await session.acall("time__get_current_time", {"timezone": "UTC"}, mcp.registry.aexecute)

    A server that cannot be reached, dies, hangs or talks nonsense makes no exception here. Its missing answer is an
    error envelope, `problems` says what is wrong, and the next call tries to reach it again. Tools that a server adds
    or drops while it runs come and go in the registry. A name that another tool has registered stays with that tool.

    A tool whose description or schema changes after it was first seen is held. It is shown as it was, and the guards
    refuse its calls until `allow`. The file of first descriptions is *pins* (`pins_file()` is this user's). None keeps
    them in this process, and False holds no tool.

    A server that cannot be confined as its entries `network` and `sandbox` ask is not started, and `problems` says why.
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        registry: Registry | None = None,
        *,
        pins: str | Literal[False] | None = None,
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self._pins = None if pins is False else Pins(pins)
        self._offered: dict[Connection, list[McpTool]] = {}
        self._connections = [Connection(server, self._changed) for server in servers]
        self._mine: dict[str, Connection] = {}

    @property
    def problems(self) -> dict[str, str]:
        """
        The present problem of each server that has one.
        """
        return {one.server.name: one.problem for one in self._connections if one.problem is not None}

    async def __aenter__(self) -> Self:
        await asyncio.gather(*(one.start() for one in self._connections))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(one.close() for one in self._connections))
        for name in self._mine:
            self.registry.remove(name)
        self._mine.clear()

    @property
    def held(self) -> dict[str, str]:
        """
        Why which tool is held.
        """
        return {name: entry.tool.held for name, entry in self.registry.entries.items() if entry.tool.held}

    def allow(self, server: str, *tools: str) -> list[str]:
        """
        Allow what held *tools* of *server* say now, by the server's names for them; all of them if none is named. Returns
        their names. To be called in the loop of the connections.

        Raises StoreError if the file of pins cannot be used.
        """
        allowed: list[str] = []
        for connection, offered in self._offered.items():
            if connection.server.name == server and self._pins is not None:
                allowed += self._pins.allow(_known_as(connection.server).key, tools)
                self._changed(connection, offered)
        return allowed

    def _changed(self, connection: Connection, offered: list[McpTool]) -> None:
        server = connection.server
        self._offered[connection] = offered
        held: dict[str, str] = {}
        if self._pins is not None and server.pins:
            seen = self._pins.look(_known_as(server), [on_wire(one) for one in offered])
            offered = [McpTool.model_validate(one.shown, by_name=False) for one in seen]
            held = {one.name: one.held for one in seen if one.held}
        # The session ends a call by the tool's timeout; the connection a little later, if nobody else did.
        found = tools_of(server.name, offered, server.timeout, held)
        for name in [name for name, owner in self._mine.items() if owner is connection and name not in found]:
            self.registry.remove(name)
            del self._mine[name]
        for name, (own, tool) in found.items():
            if name in self.registry and self._mine.get(name) is not connection:
                log.warning(
                    "`%s` is registered already, so `%s` of MCP server `%s` is left out", name, own, server.name
                )
                continue

            async def execute(_: str, arguments: Any, own: str = own) -> Any:
                return value_of(await connection.call(own, dict(arguments or {})))

            self.registry.add(tool, execute)
            self._mine[name] = connection


def _known_as(server: McpServer) -> Server:
    command = () if server.command is None else (server.command, *server.args)
    return server_of(command, server.url, server.name)
