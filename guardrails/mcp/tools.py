"""
The tools of all configured MCP servers, in a registry beside an agent's own.
"""

import asyncio

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log
from guardrails.policy.registry import Registry
from guardrails.processes.sandbox.confinement import Name

from .config import McpServer
from .connection import Connection
from .results import tools_of, value_of


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import Tool as McpTool


class McpTools:
    """
    Connects *servers* and keeps their tools in *registry*, as `{server}__{tool}`; an asynchronous context manager.

        async with McpTools(read_servers("agent.toml")) as mcp:
            envelope = await session.acall("time__get_current_time", {"timezone": "UTC"}, mcp.registry.aexecute)

    A server that cannot be reached, dies, hangs or talks nonsense makes no exception here: what it fails to answer is an
    error envelope, `problems` says what is wrong, and the next call tries to reach it again. Tools that a server adds or
    drops while it runs come and go in the registry; a name that something else has registered stays that thing's own.

    With a *sandbox* but `none`, servers that are started here have limits. What the entry of one says of `network` and
    `sandbox` holds without it too; one that cannot be confined so is not started, and `problems` says why.
    """

    def __init__(
        self, servers: Iterable[McpServer], registry: Registry | None = None, *, sandbox: Name | None = None
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self._connections = [Connection(server, self._changed, sandbox) for server in servers]
        self._mine: dict[str, Connection] = {}

    @property
    def problems(self) -> dict[str, str]:
        """
        What is wrong now with which server.
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

    def _changed(self, connection: Connection, offered: list[McpTool]) -> None:
        server = connection.server
        # The session ends a call by the tool's timeout; the connection a little later, if nobody else did.
        found = tools_of(server.name, offered, server.timeout)
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
