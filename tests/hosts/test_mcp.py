"""
Servers and clients of the `mcp` SDK behind the guards.
"""

import asyncio

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest


pytest.importorskip("mcp")

from mcp import Client
from mcp.server import MCPServer

from guardrails import Policy
from guardrails.integrations import mcp

from .contract import Contract
from .mcp_driver import CANNOT, OF_SERVERS, McpDriver, clients_of, shown_and_printed


HIDDEN: Final = {
    "test_an_exception_in_a_tool_is_data_and_the_run_goes_on": (
        "the text of an unexpected exception stays on the server: mcp/server/mcpserver/tools/base.py:213, Tool.run"
    )
}


class ServerDriver(McpDriver):
    """
    A server behind the middleware.
    """

    name = "mcp"
    integration = mcp
    cannot: Mapping[str, str] = OF_SERVERS | HIDDEN

    def client(self, tools: Sequence[Callable[..., Any]], middleware: list[Any]) -> Any:
        server = MCPServer("s", middleware=middleware)
        for tool in tools:
            server.add_tool(tool)
        return Client(server, mode=self.mode)


class LegacyDriver(ServerDriver):
    mode = "legacy"


class ClientDriver(ServerDriver):
    client_side = True
    cannot: Mapping[str, str] = CANNOT | HIDDEN


class TestMcpServer(Contract):
    driver = ServerDriver


class TestMcpServerOfTheHandshake(Contract):
    driver = LegacyDriver


class TestMcpClient(Contract):
    driver = ClientDriver


@pytest.mark.system
def test_the_page_shows_what_its_program_prints() -> None:
    shown, printed = shown_and_printed("mcp")
    assert printed == shown


def test_the_client_of_the_page_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def search(query: str) -> str:
        return "found"

    shown: dict[str, Any] = {}
    exec(compile(clients_of("mcp"), "mcp", "exec"), shown)
    server = MCPServer("s")
    server.add_tool(search)
    # In place of the address, which nobody listens at.
    monkeypatch.setitem(shown, "Client", lambda _: Client(server))
    asyncio.run(shown["ask"](Policy.load("default")))
    assert capsys.readouterr().out == "False\n"
