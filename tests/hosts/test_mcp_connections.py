"""
What servers and clients of the `mcp` SDK do behind the guards that the contract of the hosts does not know of.
"""

import asyncio

from collections.abc import Callable
from typing import Any

import pytest


pytest.importorskip("mcp")

import httpx2

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult, ToolAnnotations

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.mcp import GuardrailsMiddleware
from guardrails.mcp.calls import RUN


def served(guarded: Any, *tools: Callable[..., Any], **options: Any) -> MCPServer:
    server = MCPServer("s", middleware=[GuardrailsMiddleware(guarded, **options)])
    for tool in tools:
        server.add_tool(tool)
    return server


def test_the_annotations_of_a_tool_say_whether_a_look_follows_a_change() -> None:
    looked = []

    def peek() -> str:
        looked.append(1)
        return "the same"

    async def whole(read_only: bool) -> list[bool]:
        server = served(Policy([Duplicates(rule="evidence", window=20)]))
        server.add_tool(peek, annotations=ToolAnnotations(read_only_hint=True))
        server.add_tool(lambda n: f"done {n}", name="turn", annotations=ToolAnnotations(read_only_hint=read_only))
        looks = []
        async with Client(server) as client:
            for n in range(4):
                looks.append((await client.call_tool("peek", {})).is_error)
                await client.call_tool("turn", {"n": n})
        return looks

    assert asyncio.run(whole(read_only=False)) == [False] * 4
    assert asyncio.run(whole(read_only=True)) == [False, False, True, True]


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


def lambda_named(name: str) -> Callable[[], str]:
    def tool() -> str:
        return "found"

    tool.__name__ = name
    return tool


def test_strangers_over_http_are_no_conversation_and_those_who_name_their_run_are() -> None:
    async def whole() -> list[bool]:
        server = served(Policy([Duplicates()]), lambda_named("search"))
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


def test_a_policy_that_only_watches_changes_no_byte_of_an_answer() -> None:
    def find(name: str) -> str:
        return "Error: not found"

    async def answers(server: MCPServer) -> list[str]:
        async with Client(server) as client:
            made = [await client.call_tool(*call) for call in (("find", {"name": "a"}), ("find", {}), ("nope", {}))]
            return [one.model_dump_json() for one in made]

    bare, watched = MCPServer("s", log_level="ERROR"), MCPServer("s", log_level="ERROR")
    watched.middleware.append(GuardrailsMiddleware(Policy.load("observe")))
    for server in (bare, watched):
        server.tool()(find)
    assert asyncio.run(answers(watched)) == asyncio.run(answers(bare))
