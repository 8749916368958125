"""
Tools of openai-agents: what the model reads of them, how they fail, which of them end a run; and how a run ends.
"""

import asyncio

from typing import Any, ClassVar

import pytest


pytest.importorskip("agents")

from agents import function_tool
from agents.mcp import MCPServer
from mcp.types import CallToolResult, ImageContent, TextContent, Tool

from guardrails import Duplicates

from .behaviours.base import envelope, in_turn, search, searching
from .driver import Call, Say
from .test_openai_agents import own_loop  # noqa: F401
from .test_openai_agents_runs import CAP, agent, outputs, restless, runner


class Server(MCPServer):
    """
    A server of three tools.
    """

    name: ClassVar[str] = "shelf"

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Tool]:
        query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return [
            Tool(name="look", input_schema=query),
            Tool(name="picture", input_schema={"type": "object", "properties": {}}),
            Tool(name="broken", input_schema={"type": "object", "properties": {}}),
        ]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.called.append(tool_name)
        if tool_name == "picture":
            return CallToolResult(content=[ImageContent(type="image", data="aGk=", mime_type="image/png")])
        text = TextContent(type="text", text="looked" if tool_name == "look" else "there is no such row")
        return CallToolResult(content=[text], is_error=tool_name == "broken")

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


def served(*calls: Call, guarded: Any) -> tuple[Server, list[Any]]:
    """
    What came of *calls* of a server's tools.
    """
    server = Server()
    made = agent(in_turn(Say(calls=calls)), mcp_servers=[server])
    return server, outputs(guarded.run_sync(made, "go"))


def test_tools_of_an_mcp_server_are_guarded() -> None:
    look = Call("look", {"query": "x"})
    server, told = served(look, look, look, guarded=runner(Duplicates()))
    assert server.called == ["look"]
    assert [envelope(each)["status"] for each in told] == ["success", *["duplicate_call_blocked"] * 2]


def test_a_result_that_an_mcp_server_calls_an_error_is_one() -> None:
    _, told = served(Call("broken"), guarded=runner())
    assert envelope(told[0])["error_message"] == "there is no such row"
    assert envelope(told[0])["status"] == "error"


def test_an_image_of_an_mcp_server_stays_one() -> None:
    _, told = served(Call("picture"), guarded=runner())
    first = told[0][0] if isinstance(told[0], list) else told[0]
    assert first == {"type": "image", "image_url": "data:image/png;base64,aGk="}


def test_tools_of_two_agents_that_have_one_name_are_each_told_by_their_own_parameters() -> None:
    def look(query: str) -> str:
        return f"first {query}"

    def other(shelf: int, row: int) -> str:
        return f"second {shelf} {row}"

    calls = Say(calls=(Call("look", {"shelf": 1, "row": 2}), Call("look", {"shelf": 1})))
    second = agent(in_turn(calls), function_tool(other, name_override="look"), name="second")
    handing = Say(calls=(Call("look", {"query": "q"}), Call("transfer_to_second", {})))
    first = agent(in_turn(handing), look)
    first.handoffs = [second]
    results = [envelope(each) for each in outputs(runner().run_sync(first, "go"))]
    assert [each.get("result", each["status"]) for each in results] == ["first q", "second 1 2", "validation_error"]


# Failures


# Results that end a run


def test_the_result_that_ends_a_run_is_what_the_tool_gave_back() -> None:
    made = agent(in_turn(Say(calls=(search("x"),))), searching([]), tool_use_behavior="stop_on_first_tool")
    assert runner().run_sync(made, "go").final_output == "nothing found"


# The end


def streamed(script: Any, **more: Any) -> tuple[Any, str]:
    """
    A streamed run behind a cap of two, and the text that was heard.
    """

    async def run() -> tuple[Any, str]:
        result = runner(CAP).run_streamed(agent(script, searching([]), **more), "go")
        heard = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        return result, "".join(heard)

    return asyncio.run(run())


def test_a_streamed_model_that_calls_on_ends_with_the_digest() -> None:
    result, heard = streamed(restless)
    assert heard == result.final_output
    assert "2 tool calls were made" in heard


def test_the_last_turn_of_the_host_is_followed_by_an_answer() -> None:
    made = agent(lambda asked: Say("all that I found") if asked.off else restless(asked), searching([]))
    result = runner().run_sync(made, "go", max_turns=3)
    assert result.final_output == "all that I found"
    assert result.context_wrapper.usage.requests == 4
