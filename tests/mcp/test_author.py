"""
Tools that an author makes answer for themselves, on servers of both SDKs, read by the SDKs' own clients.
"""

import asyncio
import json

from collections.abc import Callable
from typing import Any

import pytest

from tests.tables import table


pytest.importorskip("mcp")

from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from guardrails import Budget, Duplicates, Policy, Retryable, Summary, Truncate, Validation
from guardrails.mcp import AnsweringTools
from guardrails.mcp.wire import ENVELOPE, RUN


POLICY = Policy([Budget(max_calls=4), Duplicates(window=5), Retryable(), Summary(), Truncate(max_bytes=2_000)])


def of_mcp() -> Any:
    return MCPServer("hotels")


def of_fastmcp() -> Any:
    fastmcp = pytest.importorskip("fastmcp")
    return fastmcp.FastMCP("hotels")


both = pytest.mark.parametrize("make", [of_mcp, of_fastmcp])


def served(make: Callable[[], Any], policy: Policy = POLICY) -> Any:
    server = make()
    tool = AnsweringTools(server, policy)

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


def asked(
    make: Callable[[], Any], *calls: tuple[str, dict[str, Any]], run: str | None = None, policy: Policy = POLICY
) -> list[CallToolResult]:
    """
    What a client of the `mcp` SDK, which checks structured content against the schema, gets.
    """

    async def whole() -> list[CallToolResult]:
        server = served(make, policy)
        target = server if make is of_mcp else server._mcp_server
        async with Client(target) as client:
            meta: Any = None if run is None else {RUN: run}
            return [await client.call_tool(name, arguments, meta=meta) for name, arguments in calls]

    return asyncio.run(whole())


@both
def test_a14_a_success_says_that_it_is_all_in_the_form_of_its_schema(make: Callable[[], Any]) -> None:
    (result,) = asked(make, ("search_hotels", {"city": "Bern"}))
    assert not result.is_error
    answer = result.structured_content
    assert answer is not None
    assert (answer["status"], answer["is_complete"], answer["total_matches"]) == ("success", True, 3)
    assert answer["results"][0] == {"id": 0, "city": "Bern"}
    assert json.loads(result.content[0].text) == answer  # type: ignore[union-attr]


@both
def test_a14_a_failure_says_whether_to_try_again(make: Callable[[], Any]) -> None:
    (result,) = asked(make, ("search_hotels", {"city": "down"}))
    assert result.is_error
    assert result.structured_content is None
    line, envelope = result.content[0].text.split("\n", 1)  # type: ignore[union-attr]
    assert line == "[guardrails:timeout] the supplier did not answer"
    read = json.loads(envelope)
    assert (read["status"], read["retryable"], read["retry_after_ms"]) == ("error", True, 1000)
    assert result.meta is not None
    assert result.meta[ENVELOPE] == read


@both
@table(
    ("tool", "arguments", "fields"),
    [
        ("search_hotels", {"city": 7, "limit": "x"}, ["city", "limit"]),
        ("search_hotels", {}, ["city"]),
        ("describe", {"hotel": None}, ["hotel"]),
    ],
)
@table("guards", [POLICY.chain.guards, [Validation()]])
def test_a7_arguments_that_do_not_fit_are_a_validation_error_and_never_reach_the_function(
    make: Callable[[], Any], tool: str, arguments: dict[str, Any], fields: list[str], guards: Any
) -> None:
    (result,) = asked(make, (tool, arguments), policy=Policy(guards))
    assert result.is_error
    line, envelope = result.content[0].text.split("\n", 1)  # type: ignore[union-attr]
    assert line == f"[guardrails:validation.arguments] The arguments do not fit `{tool}`."
    read = json.loads(envelope)
    assert read["status"] == "validation_error"
    assert [error["field"] for error in read["errors"]] == fields
    assert read["retryable_after_correction"] is True


@both
def test_tools_say_what_they_return_and_what_they_do(make: Callable[[], Any]) -> None:
    async def whole() -> Any:
        server = served(make)
        async with Client(server if make is of_mcp else server._mcp_server) as client:
            return (await client.list_tools()).tools

    found = {tool.name: tool for tool in asyncio.run(whole())}
    search = found["search_hotels"]
    assert set(search.input_schema["properties"]) == {"city", "limit"}
    assert search.input_schema["required"] == ["city"]
    assert (
        search.input_schema["properties"]["limit"]["default"],
        search.input_schema["properties"]["city"]["type"],
    ) == (
        3,
        "string",
    )
    assert search.output_schema["properties"]["is_complete"]
    assert search.description == "Find hotels."
    assert search.annotations.read_only_hint is True


def test_each_run_has_a_budget_of_its_own_and_calls_that_name_none_share_one() -> None:
    async def whole() -> list[bool]:
        async with Client(served(of_mcp)) as client:
            ended = []
            for run in ("a", "b", None):
                for n in range(5):
                    meta: Any = None if run is None else {RUN: run}
                    result = await client.call_tool("describe", {"hotel": n}, meta=meta)
                    ended.append(bool(result.is_error))
            return ended

    assert asyncio.run(whole()) == [False] * 4 + [True] + [False] * 4 + [True] + [False] * 4 + [True]


def test_a_tool_that_asks_its_client_is_called_again_and_that_is_no_duplicate() -> None:
    questions: list[str] = []

    async def elicited(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"nights": 3})

    async def whole() -> tuple[CallToolResult, CallToolResult]:
        server = of_mcp()
        tool = AnsweringTools(server, POLICY)

        @tool
        async def book(city: str, ctx: Context) -> Any:
            if ctx.input_responses is None:
                schema: Any = {"type": "object", "properties": {"nights": {"type": "integer"}}}
                params = ElicitRequestFormParams(message="How many nights?", requested_schema=schema)
                return InputRequiredResult(input_requests={"n": ElicitRequest(params=params)}, request_state="s")
            return f"booked in {city}: {getattr(ctx.input_responses['n'], 'content', None)}"

        async with Client(server, elicitation_callback=elicited) as client:
            first = await client.call_tool("book", {"city": "Bern"})
            return first, await client.call_tool("book", {"city": "Bern"})

    first, again = asyncio.run(whole())
    assert questions == ["How many nights?"]
    assert first.structured_content is not None
    assert first.structured_content["result"] == "booked in Bern: {'nights': 3}"
    # The same call from the start is a repeat.
    assert again.is_error
