"""
FastMCP servers and clients behind the guards.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest


pytest.importorskip("fastmcp")

from fastmcp import Client, FastMCP

from guardrails.integrations import fastmcp

from .contract import Contract
from .driver import Call
from .mcp_driver import CANNOT, OF_SERVERS, McpDriver


class ServerDriver(McpDriver):
    """
    A server behind the middleware.
    """

    name = "fastmcp"
    integration = fastmcp
    cannot: Mapping[str, str] = OF_SERVERS

    def client(self, tools: Sequence[Callable[..., Any]], middleware: list[Any]) -> Any:
        server = FastMCP("s", middleware=middleware)
        for tool in tools:
            server.tool(tool)
        return Client(server, mode=self.mode)

    async def called(self, client: Any, call: Call, meta: dict[str, Any]) -> Any:
        return await super().called(client, call, {**meta, "raise_on_error": False})


class LegacyDriver(ServerDriver):
    mode = "legacy"


class ClientDriver(ServerDriver):
    client_side = True
    cannot: Mapping[str, str] = CANNOT | {
        "test_an_exception_in_a_tool_is_data_and_the_run_goes_on": (
            "a client gets the text of an exception and not its class: fastmcp/server/server.py:1562, FastMCP.call_tool"
        )
    }


class TestFastMcpServer(Contract):
    driver = ServerDriver


class TestFastMcpServerOfTheHandshake(Contract):
    driver = LegacyDriver


class TestFastMcpClient(Contract):
    driver = ClientDriver
