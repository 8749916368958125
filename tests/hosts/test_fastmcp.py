"""
FastMCP servers and clients behind the guards.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest


pytest.importorskip("fastmcp")

from fastmcp import Client, FastMCP

from guardrails.integrations.fastmcp import GuardedClient, GuardrailsMiddleware

from .contract import Contract
from .driver import Call
from .mcp_driver import CANNOT, OF_SERVERS, McpDriver


class ServerDriver(McpDriver):
    """
    A server behind the middleware.
    """

    name = "fastmcp"
    mode: str = "auto"
    cannot: Mapping[str, str] = OF_SERVERS

    def adapter(self, guarded: Any, **options: Any) -> Any:
        return GuardrailsMiddleware(guarded, **options)

    def connected(self, tools: Sequence[Callable[..., Any]], adapter: Any, thread: str | None) -> Any:
        server = FastMCP("s", middleware=[] if adapter is None else [adapter])
        for tool in tools:
            server.tool(tool)
        return Client(server, mode=self.mode)

    async def called(self, client: Any, call: Call, meta: dict[str, Any]) -> Any:
        return await super().called(client, call, {**meta, "raise_on_error": False})


class LegacyDriver(ServerDriver):
    """
    The same by the protocol with a handshake.
    """

    mode = "legacy"


class ClientDriver(ServerDriver):
    """
    A client behind a session, of a server that knows nothing of it.
    """

    client_side = True
    cannot: Mapping[str, str] = CANNOT | {
        "test_an_exception_in_a_tool_is_data_and_the_run_goes_on": (
            "a client gets the text of an exception and not its class: fastmcp/server/server.py:1562, FastMCP.call_tool"
        )
    }

    def adapter(self, guarded: Any, **options: Any) -> Any:
        return partial(GuardedClient, guarded=guarded, **options)

    def connected(self, tools: Sequence[Callable[..., Any]], adapter: Any, thread: str | None) -> Any:
        client = super().connected(tools, None, thread)
        return client if adapter is None else adapter(client, run=thread)


class TestFastMcpServer(Contract):
    driver = ServerDriver


class TestFastMcpServerOfTheHandshake(Contract):
    driver = LegacyDriver


class TestFastMcpClient(Contract):
    driver = ClientDriver
