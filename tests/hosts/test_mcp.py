"""
Servers and clients of the `mcp` SDK behind the guards.
"""

import asyncio

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pytest


pytest.importorskip("mcp")

import httpx2

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations import mcp
from guardrails.integrations.mcp import GuardedClient, GuardrailsMiddleware
from guardrails.mcp.calls import RUN

from .behaviours import Contract, Pages
from .mcp_driver import McpDriver, clients_of


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
    hidden: Mapping[str, str] = HIDDEN

    def client(self, tools: Sequence[Callable[..., Any]], middleware: list[Any]) -> Any:
        server = MCPServer("s", middleware=middleware)
        for tool in tools:
            server.add_tool(tool)
        return Client(server, mode=self.mode)


class TestMcpServer(Contract, Pages):
    driver = ServerDriver


class TestMcpServerOfTheHandshake(Contract):
    driver = partial(ServerDriver, "legacy")


class TestMcpClient(Contract):
    driver = partial(ServerDriver, client_side=True)


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


# The package alone


def served(guarded: Any, *tools: Callable[..., Any], **options: Any) -> MCPServer:
    server = MCPServer("s", middleware=[GuardrailsMiddleware(guarded, **options)])
    for tool in tools:
        server.add_tool(tool)
    return server


def test_two_clients_of_one_run_share_its_cap_and_another_run_has_its_own() -> None:
    ran = []

    async def search(q: str) -> str:
        ran.append(q)
        await asyncio.sleep(0)
        return "found"

    async def whole() -> list[bool]:
        first: Any = {RUN: "trip-42"}
        second: Any = {RUN: "trip-43"}
        server = served(Policy([Budget(max_calls=3)]), search)
        async with Client(server) as one, Client(server, mode="legacy") as two:
            calls = [client.call_tool("search", {"q": f"{n}"}, meta=first) for n in range(4) for client in (one, two)]
            refused = [result.is_error for result in await asyncio.gather(*calls)]
            other = await two.call_tool("search", {"q": "other"}, meta=second)
            return [*refused, other.is_error]

    refused = asyncio.run(whole())
    assert refused.count(True) == 5
    assert not refused[-1]
    assert len(ran) == 4


def test_strangers_over_http_are_no_conversation_and_those_who_name_their_run_are() -> None:
    def search() -> str:
        return "found"

    async def whole() -> list[bool]:
        server = served(Policy([Duplicates()]), search)
        app = server.streamable_http_app(stateless_http=True, json_response=True)
        async with (
            server.session_manager.run(),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http,
            Client(streamable_http_client("http://127.0.0.1:8000/mcp", http_client=http)) as client,
        ):
            metas: list[Any] = [None, None, {RUN: "a"}, {RUN: "a"}]
            return [(await client.call_tool("search", {}, meta=meta)).is_error for meta in metas]

    assert asyncio.run(whole()) == [False, False, False, True]


async def accept(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"ok": True})


def test_a_call_that_comes_again_with_what_it_asked_for_is_the_same_call() -> None:
    legs = []

    async def book(room: str, ctx: Context) -> str | InputRequiredResult:
        legs.append(ctx.input_responses is not None)
        form: Any = {"message": "sure?", "requested_schema": {"type": "object", "properties": {}}}
        asked = ElicitRequest(method="elicitation/create", params=ElicitRequestFormParams(**form))
        return "booked" if legs[-1] else InputRequiredResult(input_requests={"ok": asked})

    async def whole() -> list[Any]:
        server = served(Policy([Budget(max_calls=1), Duplicates()]), book)
        async with Client(server, elicitation_callback=accept) as client:
            return [await client.call_tool("book", {"room": "a"}) for _ in range(2)]

    first, second = asyncio.run(whole())
    assert not first.is_error
    assert legs == [False, True]
    assert second.is_error


def test_a_client_keeps_what_else_it_can_do_and_tells_the_server_the_session() -> None:
    heard = []

    def search(q: str, ctx: Context) -> str:
        heard.append((ctx.request_context.meta or {}).get(RUN))
        return "found"

    async def whole() -> None:
        server = MCPServer("s")
        server.add_tool(search)
        async with GuardedClient(Client(server), Policy.load("default"), run="trip-42") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["search"]
            assert client.server_info.name == "s"
            await client.call_tool("search", {"q": "x"})
            assert client.guarded_by.ledger.progress["calls_used"] == 1
            raw = GuardedClient(client.session, client.guarded_by)
            await raw.call_tool("search", {"q": "y"})
            assert client.guarded_by.ledger.progress["calls_used"] == 2

    asyncio.run(whole())
    assert heard == ["trip-42", "trip-42"]
