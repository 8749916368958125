"""
FastMCP servers and clients behind the guards.
"""

import asyncio

from collections.abc import Callable, Mapping, Sequence
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

from .contract import Contract
from .driver import Call
from .mcp_driver import CANNOT, OF_SERVERS, McpDriver, said


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


# The package alone


both = pytest.mark.parametrize("mode", ["auto", "legacy"])


class Hotel(BaseModel):
    name: str
    stars: int


def hotels(n: int = 1) -> list[Hotel]:
    """Find hotels."""
    return [Hotel(name="x" * 100, stars=4)] * n


def served(*tools: Callable[..., Any], **options: Any) -> FastMCP:
    server: FastMCP = FastMCP("s", **options)
    for tool in tools:
        server.tool(tool)
    return server


def guarding(server: FastMCP, guarded: Any = None, **options: Any) -> FastMCP:
    server.add_middleware(GuardrailsMiddleware(guarded or Policy.load("default"), **options))
    return server


def called(client: Any, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[Any]:
    async def whole() -> list[Any]:
        async with client:
            return [await client.call_tool(*call, raise_on_error=False, **options) for call in calls]

    return asyncio.run(whole())


@both
def test_a_result_that_is_cut_is_still_what_the_tool_promises(mode: str) -> None:
    [result] = called(Client(guarding(served(hotels)), mode=mode), ("hotels", {"n": 5_000}))
    assert not result.is_error
    assert said(result)["is_complete"] is False
    assert 300 < len(result.data) < 700
    assert result.data[0].stars == 4


def test_a_wrong_argument_is_named_and_one_that_the_server_takes_is_none() -> None:
    wrong, right = called(Client(guarding(served(hotels))), ("hotels", {"n": "many"}), ("hotels", {"n": "2"}))
    assert said(wrong)["errors"] == [{"field": "n", "message": "must be an integer, not a string"}]
    assert len(right.data) == 2


def test_a_guarded_client_answers_in_the_clients_own_type_and_raises_as_it_does() -> None:
    async def whole() -> None:
        heard = []

        def search(q: str, ctx: Context) -> Hotel:
            """Search."""
            heard.append((ctx.request_context.meta or {}).get(RUN) if ctx.request_context else None)
            return Hotel(name=q, stars=3)

        policy = Policy([Budget(max_calls=2)])
        async with GuardedClient(Client(served(search)), policy, run="trip-42") as client:
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
