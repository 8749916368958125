"""
Low-level servers of the `mcp` SDK, servers that go away, and clients behind a session.
"""

import asyncio

from typing import Any

import pytest

from tests.tables import table


pytest.importorskip("mcp")


from mcp import Client, MCPError
from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from guardrails import Budget, Policy
from guardrails.integrations.mcp import GuardedClient, GuardrailsMiddleware
from guardrails.mcp.calls import RUN

from .mcp_driver import said


both = pytest.mark.parametrize("mode", ["auto", "legacy"])


LOW = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"], "additionalProperties": False}


def low_level(guarded: Any) -> Server[Any]:
    """
    A server without functions, as they are made by those who know the protocol; its tool has a strict schema.
    """

    async def listed(ctx: Any, params: Any) -> ListToolsResult:
        tool = Tool(name="add", input_schema={"type": "object"}, output_schema=LOW)
        return ListToolsResult(tools=[tool])

    async def called(ctx: Any, params: CallToolRequestParams) -> CallToolResult:
        if not params.arguments:
            raise RuntimeError("a secret of the server's")
        if "sum" not in params.arguments:
            raise MCPError(code=-32602, message="no sum")
        return CallToolResult(content=[TextContent(text="3")], structured_content={"sum": 3})

    server: Server[Any] = Server("low", on_list_tools=listed, on_call_tool=called)
    server.middleware.append(GuardrailsMiddleware(guarded))
    return server


@both
def test_a_low_level_server_is_guarded_and_its_strict_schema_holds(mode: str) -> None:
    async def whole() -> list[Any]:
        async with Client(low_level(Policy([Budget(max_calls=2)])), mode=mode) as client:
            await client.list_tools()
            return [await client.call_tool("add", {"sum": 1}) for _ in range(3)]

    _, last, refused = asyncio.run(whole())
    assert last.structured_content == {"sum": 3}
    assert said(last)["limit_reached"] is True
    assert len(last.content) == 2
    assert refused.is_error
    assert refused.structured_content is None


@both
@table("arguments", [{}, {"other": 1}])
def test_what_a_server_raises_reaches_the_client_as_it_would_without_us(mode: str, arguments: Any) -> None:
    async def raised(server: Any) -> str:
        async with Client(server, mode=mode) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("add", arguments)
            return f"{caught.value.error.code} {caught.value.error.message}"

    bare = low_level(Policy([]))
    bare.middleware.pop()
    session = Policy.load("default").session("s")
    assert asyncio.run(raised(low_level(session))) == asyncio.run(raised(bare))
    assert session.ledger.progress["calls_used"] == 1


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
