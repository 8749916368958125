"""
Tools that an author makes answer for themselves, on servers of both SDKs, read by the SDKs' own clients.
"""

import asyncio
import json
import threading

from collections.abc import Callable
from typing import Any

import pytest


pytest.importorskip("mcp")

from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from guardrails import Budget, Duplicates, Policy, Retryable, Summary, Truncate, Validation
from guardrails.mcp import AnsweringTools
from guardrails.mcp.calls import ENVELOPE


GUARDS = [Budget(max_calls=4), Duplicates(window=5), Retryable(), Summary(), Truncate(max_bytes=2_000)]


@pytest.fixture(params=["mcp", "fastmcp"])
def server(request: pytest.FixtureRequest) -> Any:
    return MCPServer("s") if request.param == "mcp" else pytest.importorskip("fastmcp").FastMCP("s")


def within(server: Any, work: Callable[[Any], Any]) -> Any:
    """
    What *work* gives for a client of the `mcp` SDK, which checks structured content against the schema.
    """

    async def whole() -> Any:
        async with Client(server if isinstance(server, MCPServer) else server._mcp_server) as client:
            return await work(client)

    return asyncio.run(whole())


def hotels(server: Any, guards: Any = GUARDS) -> Any:
    """
    *server* with two tools.
    """
    tool = AnsweringTools(server, Policy(guards))

    @tool(read_only=True)
    def search_hotels(city: str, limit: int = 3) -> list[dict[str, Any]]:
        """
        Find hotels.
        """
        if city == "down":
            raise TimeoutError("the supplier did not answer")
        return [{"id": n, "city": city} for n in range(limit)]

    @tool
    async def describe(hotel: int) -> str:
        """
        Say what a hotel is like.
        """
        return "fine " * 1_000

    return server


def refusal(result: CallToolResult) -> tuple[str, dict[str, Any]]:
    """
    The line for a person, and the envelope.
    """
    assert result.is_error
    assert result.structured_content is None
    line, envelope = result.content[0].text.split("\n", 1)  # type: ignore[union-attr]
    assert (result.meta or {})[ENVELOPE] == json.loads(envelope)
    return line, json.loads(envelope)


def test_a14_a_tool_says_state_completion_and_retryability_in_the_form_of_its_schema(server: Any) -> None:
    async def work(client: Any) -> Any:
        calls = [await client.call_tool("search_hotels", {"city": city}) for city in ("Bern", "down")]
        return *calls, (await client.list_tools()).tools

    found, down, tools = within(hotels(server), work)
    answer = found.structured_content
    assert (answer["status"], answer["is_complete"], answer["total_matches"]) == ("success", True, 3)
    assert answer["results"][0] == {"id": 0, "city": "Bern"}
    assert json.loads(found.content[0].text) == answer
    line, read = refusal(down)
    assert line == "[guardrails:timeout] the supplier did not answer"
    assert (read["status"], read["retryable"], read["retry_after_ms"]) == ("error", True, 1000)
    [search] = [tool for tool in tools if tool.name == "search_hotels"]
    fields = search.input_schema["properties"]
    assert (set(fields), search.input_schema["required"]) == ({"city", "limit"}, ["city"])
    assert (fields["limit"]["default"], fields["city"]["type"]) == (3, "string")
    assert search.output_schema["properties"]["is_complete"]
    assert (search.description, search.annotations.read_only_hint) == ("Find hotels.", True)


WRONG: list[tuple[str, dict[str, Any], list[str]]] = [
    ("search_hotels", {"city": 7, "limit": "x"}, ["city", "limit"]),
    ("search_hotels", {}, ["city"]),
    ("describe", {"hotel": None}, ["hotel"]),
]


@pytest.mark.parametrize("guards", [GUARDS, [Validation()]])
def test_a7_arguments_that_do_not_fit_are_an_error_and_never_reach_the_function(server: Any, guards: Any) -> None:
    async def work(client: Any) -> Any:
        return [await client.call_tool(tool, arguments) for tool, arguments, _ in WRONG]

    for (tool, _, fields), result in zip(WRONG, within(hotels(server, guards), work), strict=True):
        line, read = refusal(result)
        assert line == f"[guardrails:validation.arguments] The arguments do not fit `{tool}`."
        assert (read["status"], read["retryable_after_correction"]) == ("validation_error", True)
        assert [error["field"] for error in read["errors"]] == fields


def test_a_tool_that_is_stuck_holds_up_no_other_nor_the_end() -> None:
    server, free, ended = MCPServer("s"), threading.Event(), threading.Event()
    tool = AnsweringTools(server, Policy([]))

    @tool(timeout=0.02)
    def stuck() -> None:
        free.wait(20)
        ended.set()

    @tool
    def fine() -> str:
        return "fine"

    async def work(client: Any) -> Any:
        calls = [client.call_tool("stuck", {}) for _ in range(40)]
        late = [refusal(result)[1]["error_type"] for result in await asyncio.gather(*calls)]
        return late, (await client.call_tool("fine", {})).structured_content["result"]

    try:
        assert within(server, work) == (["timeout"] * 40, "fine")
        assert not ended.is_set()
    finally:
        free.set()


def test_a_tool_that_asks_its_client_is_called_again_and_that_is_no_duplicate() -> None:
    questions: list[str] = []
    server = MCPServer("s")
    tool = AnsweringTools(server, Policy(GUARDS))

    @tool
    async def book(city: str, ctx: Context) -> Any:
        if ctx.input_responses is None:
            schema: Any = {"type": "object", "properties": {"nights": {"type": "integer"}}}
            params = ElicitRequestFormParams(message="How many nights?", requested_schema=schema)
            return InputRequiredResult(input_requests={"n": ElicitRequest(params=params)}, request_state="s")
        return f"booked in {city}: {getattr(ctx.input_responses['n'], 'content', None)}"

    async def elicited(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"nights": 3})

    async def whole() -> list[CallToolResult]:
        async with Client(server, elicitation_callback=elicited) as client:
            return [await client.call_tool("book", {"city": "Bern"}) for _ in range(2)]

    first, again = asyncio.run(whole())
    # The same call from the start is a repeat.
    assert (questions, again.is_error) == (["How many nights?"], True)
    assert (first.structured_content or {})["result"] == "booked in Bern: {'nights': 3}"
