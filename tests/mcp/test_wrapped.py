"""
Wrapped functions as tools of a server of the two SDKs, which check what comes back by the annotation.
"""

import asyncio
import functools

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import pytest

from guardrails import Duplicates, Policy, Session, Summary
from tests.tables import table


pytest.importorskip("mcp")


def search(query: str, n: int = 2) -> list[dict[str, Any]]:
    """
    Find things.
    """
    return [{"found": query}] * n


async def asearch(query: str) -> dict[str, str]:
    return {"found": query}


def pages(query: str) -> Iterator[int]:
    yield from range(len(query))


async def apages(query: str) -> AsyncIterator[str]:
    for letter in query:
        yield letter


class Shop:
    def order(self, query: str) -> "list[str]":
        return [query]

    def __call__(self, query: str) -> float:
        return 0.5


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "search": search,
    "asearch": asearch,
    "pages": pages,
    "apages": apages,
    "order": Shop().order,
    "ask": Shop(),
    "few": functools.partial(search, n=1),
}


def served(sdk: str, tools: dict[str, Callable[..., Any]], asked: Callable[[Any], Any]) -> Any:
    """
    What *asked* gives for a client of a server of *sdk* that has *tools*.
    """
    server: Any
    client: Any
    if sdk == "fastmcp":
        fastmcp = pytest.importorskip("fastmcp")
        server, client = fastmcp.FastMCP("s"), fastmcp.Client
    else:
        from mcp import Client
        from mcp.server.mcpserver import MCPServer

        server, client = MCPServer("s"), Client
    for tool in tools.values():
        server.tool()(tool)

    async def within() -> Any:
        async with client(server) as connected:
            return await asked(connected)

    return asyncio.run(within())


async def answer(client: Any, tool: str, **arguments: Any) -> Any:
    try:
        return await client.call_tool(tool, arguments)
    except Exception as error:
        return error


@pytest.fixture(params=["mcp", "fastmcp"])
def sdk(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session() -> Session:
    return Policy([Duplicates(), Summary()]).session("s")


@table("returns", ["json", "envelope", "value"])
def test_every_kind_of_function_answers_every_call(
    returns: Literal["json", "envelope", "value"], sdk: str, session: Session
) -> None:
    tools: dict[str, Any] = {
        name: session.wrap(function, returns=returns, name=name) for name, function in FUNCTIONS.items()
    }

    async def asked(client: Any) -> list[Any]:
        return [await answer(client, tool, query=query) for tool in tools for query in ("one", "other")]

    for result in served(sdk, tools, asked):
        assert not isinstance(result, Exception), result
        assert not result.is_error, result.content
