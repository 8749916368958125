"""
FastMCP servers and clients behind the guards.
"""

import asyncio

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest


pytest.importorskip("fastmcp")

from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel

from guardrails import Budget, Policy
from guardrails.integrations import fastmcp
from guardrails.integrations.fastmcp import GuardedClient, GuardrailsMiddleware
from guardrails.mcp.calls import RUN

from .behaviours import Contract
from .driver import Call
from .mcp_driver import McpDriver, said


class ServerDriver(McpDriver):
    """
    A server behind the middleware.
    """

    name = "fastmcp"
    integration = fastmcp
    of_clients: Mapping[str, str] = {
        "test_an_exception_in_a_tool_is_data_and_the_run_goes_on": (
            "a client gets the text of an exception and not its class: fastmcp/server/server.py:1562, FastMCP.call_tool"
        )
    }

    def client(self, tools: Sequence[Callable[..., Any]], middleware: list[Any]) -> Any:
        server = FastMCP("s", middleware=middleware)
        for tool in tools:
            server.tool(tool)
        return Client(server, mode=self.mode)

    async def called(self, client: Any, call: Call, meta: dict[str, Any]) -> Any:
        return await super().called(client, call, {**meta, "raise_on_error": False})


class TestFastMcpServer(Contract):
    driver = ServerDriver


class TestFastMcpServerOfTheHandshake(Contract):
    driver = partial(ServerDriver, "legacy")


class TestFastMcpClient(Contract):
    driver = partial(ServerDriver, client_side=True)


# The package alone


class Hotel(BaseModel):
    name: str
    stars: int


def hotels(n: int = 1) -> list[Hotel]:
    """Find hotels."""
    return [Hotel(name="x" * 100, stars=4)] * n


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_result_that_is_cut_is_still_what_the_tool_promises_and_a_wrong_argument_is_named(mode: str) -> None:
    server: FastMCP = FastMCP("s", middleware=[GuardrailsMiddleware(Policy.load("default"))])
    server.tool(hotels)

    async def whole() -> list[Any]:
        async with Client(server, mode=mode) as client:
            return [await client.call_tool("hotels", {"n": n}, raise_on_error=False) for n in (5_000, "many", "2")]

    cut, wrong, right = asyncio.run(whole())
    assert (cut.is_error, said(cut)["is_complete"], cut.data[0].stars) == (False, False, 4)
    assert 300 < len(cut.data) < 700
    assert said(wrong)["errors"] == [{"field": "n", "message": "must be an integer, not a string"}]
    assert len(right.data) == 2


def test_a_guarded_client_answers_in_the_clients_own_type_and_raises_as_it_does() -> None:
    async def whole() -> None:
        heard = []

        def search(q: str, ctx: Context) -> Hotel:
            """Search."""
            heard.append((ctx.request_context.meta or {}).get(RUN) if ctx.request_context else None)
            return Hotel(name=q, stars=3)

        policy, server = Policy([Budget(max_calls=2)]), FastMCP("s")
        server.tool(search)
        async with GuardedClient(Client(server), policy, run="trip-42") as client:
            assert [tool.name for tool in await client.list_tools()] == ["search"]
            assert (await client.call_tool("search", {"q": "x"})).data.stars == 3
            last = await client.call_tool("search", {"q": "y"})
            assert last.data.stars == 3
            assert said(last)["limit_reached"] is True
            with pytest.raises(ToolError, match=r"^\[guardrails:budget.max_calls\]"):
                await client.call_tool("search", {"q": "z"})
            assert client.is_connected()
            assert client.guarded_by.exhausted == "budget.max_calls"
        assert heard == ["trip-42"] * 2

    asyncio.run(whole())
