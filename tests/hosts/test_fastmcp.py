"""
FastMCP servers and clients behind the guards.
"""

import asyncio

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest


pytest.importorskip("fastmcp")

from fastmcp import Client, FastMCP

from guardrails import Policy
from guardrails.integrations.fastmcp import GuardedClient, GuardrailsMiddleware

from .contract import Contract
from .driver import Call
from .mcp_driver import CANNOT, OF_SERVERS, McpDriver, clients_of, shown_and_printed


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
        ),
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


@pytest.mark.system
def test_the_page_shows_what_its_program_prints() -> None:
    shown, printed = shown_and_printed("fastmcp")
    assert printed == shown


def test_the_client_of_the_page_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def search(query: str) -> str:
        return "found"

    shown: dict[str, Any] = {}
    exec(compile(clients_of("fastmcp"), "fastmcp", "exec"), shown)
    server = FastMCP("s")
    server.tool(search)
    # In place of the address, which nobody listens at.
    monkeypatch.setitem(shown, "Client", lambda _: Client(server))
    asyncio.run(shown["ask"](Policy.load("default")))
    assert capsys.readouterr().out == "False\n"
