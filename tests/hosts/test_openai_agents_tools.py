"""
Tools of openai-agents: what the model reads of them, how they fail, which of them end a run; and how a run ends.
"""

import asyncio
import contextlib

from typing import Any, ClassVar

import pytest


pytest.importorskip("agents")

from agents import (
    AgentHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolOutputImage,
    ToolOutputText,
    ToolsToFinalOutputResult,
    function_tool,
    tool_output_guardrail,
)
from agents.exceptions import MaxTurnsExceeded, ToolTimeoutError, UserError
from agents.mcp import MCPServer
from mcp.types import CallToolResult, ImageContent, TextContent, Tool

from guardrails import Duplicates, Policy, Retryable, Rule, ToolFilter
from guardrails.integrations.openai_agents import GuardedRunner

from .behaviours.base import envelope, in_turn, search, searching, stuck
from .driver import Call, Say
from .test_openai_agents import own_loop  # noqa: F401
from .test_openai_agents_runs import CAP, Answer, agent, outputs, restless, runner, seen


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
    assert [envelope(each["text"])["status"] for each in told] == ["success", *["duplicate_call_blocked"] * 2]


def test_a_result_that_an_mcp_server_calls_an_error_is_one() -> None:
    _, told = served(Call("broken"), guarded=runner())
    assert envelope(told[0]["text"])["error_message"] == "there is no such row"
    assert envelope(told[0]["text"])["status"] == "error"


def test_an_image_of_an_mcp_server_stays_one() -> None:
    _, told = served(Call("picture"), guarded=runner())
    first = told[0][0] if isinstance(told[0], list) else told[0]
    assert first == {"type": "image", "image_url": "data:image/png;base64,aGk="}


@pytest.mark.parametrize("arguments", ['{"query": 1}', "{}", '{"query'], ids=["type", "missing", "no JSON"])
def test_arguments_that_an_mcp_tool_does_not_take_reach_no_server(arguments: str) -> None:
    server, told = served(Call("look", arguments), guarded=runner())
    text = told[0] if isinstance(told[0], str) else told[0]["text"]
    assert envelope(text)["status"] == "validation_error"
    assert server.called == []


def test_a_server_in_a_plain_run_is_as_before() -> None:
    server = Server()
    made = agent(in_turn(Say(calls=(Call("look", {"query": "x"}),))), mcp_servers=[server])
    runner().run_sync(made, "go")
    made = made.clone(model=agent(in_turn(Say(calls=(Call("look", {"query": "x"}),)))).model)
    assert outputs(Runner.run_sync(made, "go")) == [{"type": "text", "text": "looked"}]


def test_a_parameter_with_a_default_may_be_left_out() -> None:
    def look(query: str, limit: int = 3, tag: str | None = None) -> str:
        """Look something up."""
        return f"{query} {limit} {tag}"

    result = runner().run_sync(agent(in_turn(Say(calls=(Call("look", {"query": "x"}),))), look), "go")
    assert envelope(outputs(result)[0])["result"] == "x 3 None"


def test_a_tool_that_was_not_offered_is_refused_by_data() -> None:
    result = runner().run_sync(agent(in_turn(Say(calls=(Call("serch", {"query": "x"}),))), searching([])), "go")
    refused = envelope(outputs(result)[0])
    assert refused["code"] == "tool_filter.unknown"
    assert "search" in refused["next_action_hint"]
    assert result.final_output == "Done."


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


def test_an_image_of_a_tool_stays_one() -> None:
    def draw() -> ToolOutputImage:
        """Draw a picture."""
        return ToolOutputImage(image_url="data:image/png;base64,aGk=")

    [told] = outputs(GuardedRunner(Policy([])).run_sync(agent(in_turn(Say(calls=(Call("draw"),))), draw), "go"))
    assert (told[0] if isinstance(told, list) else told) == draw()


@pytest.mark.parametrize("size", [4, 400_000])
def test_pieces_of_one_result_are_no_matches_and_a_big_image_is_whole(size: int) -> None:
    def draw() -> list[Any]:
        """Draw two pictures."""
        picture = ToolOutputImage(image_url="data:image/png;base64," + "A" * size)
        return [ToolOutputText(text="two of them"), picture, picture]

    [told] = outputs(runner().run_sync(agent(in_turn(Say(calls=(Call("draw"),))), draw), "go"))
    assert told == draw()


def test_a_text_beside_an_image_is_cut_and_the_image_is_kept() -> None:
    picture = ToolOutputImage(image_url="data:image/png;base64,aGk=")

    def draw() -> list[Any]:
        """Draw a picture, and say much of it."""
        return [ToolOutputText(text="much " * 40_000), picture]

    [told] = outputs(runner().run_sync(agent(in_turn(Say(calls=(Call("draw"),))), draw), "go"))
    assert told[1:] == [picture]
    assert not envelope(told[0].text)["is_complete"]


def test_a_tool_that_is_added_while_the_run_goes_on_is_guarded() -> None:
    ran: list[str] = []

    class Adding(AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            agent.tools.append(function_tool(searching(ran)))

    made = agent(restless, hooks=Adding())
    runner(CAP).run_sync(made, "go")
    assert ran == ["q0", "q1"]


def test_an_object_that_only_looks_like_a_part_of_a_conversation_is_data() -> None:
    def listing() -> Any:
        """List a folder."""
        return [{"type": "file", "name": "a.txt"}]

    [told] = outputs(runner().run_sync(agent(in_turn(Say(calls=(Call("listing"),))), listing), "go"))
    assert envelope(told)["results"] == [{"type": "file", "name": "a.txt"}]


def test_a_tool_with_a_schema_of_its_output_keeps_it() -> None:
    def rows() -> dict[str, int]:
        """Count the rows."""
        return {"rows": 3}

    schema = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
    calls = Say(calls=(Call("rows"), Call("rows")))
    tool = function_tool(rows, output_json_schema=schema, strict_mode=False)
    told = outputs(runner(Duplicates()).run_sync(agent(in_turn(calls), tool), "go"))
    assert told[0] == {"rows": 3}
    assert envelope(told[1])["status"] == "duplicate_call_blocked"


# Failures


def failing(**settings: Any) -> Any:
    """
    A tool that fails, with *settings* of `function_tool`.
    """

    async def fetch() -> str:
        """Fetch something."""
        if "timeout" in settings:
            await asyncio.sleep(20)
        raise ConnectionError("the index is down")

    return function_tool(fetch, **settings)


def failed(**settings: Any) -> Any:
    """
    What the model reads of it.
    """
    made = agent(in_turn(Say(calls=(Call("fetch"),))), failing(**settings))
    return envelope(outputs(runner().run_sync(made, "go"))[0])


def test_what_the_author_says_of_a_failure_is_what_the_model_reads() -> None:
    read = failed(failure_error_function=lambda context, error: f"sorry: {error}")
    assert (read["error_type"], read["error_message"]) == ("connection", "sorry: the index is down")


def test_a_failure_that_the_author_wants_raised_is_raised() -> None:
    with pytest.raises(UserError, match="the index is down"):
        failed(failure_error_function=None)


@pytest.mark.parametrize("failure", [{}, {"failure_error_function": None}], ids=["told", "raised"])
def test_a_call_that_is_made_again_reads_as_its_last_attempt(clock: Any, failure: Any) -> None:
    ran: list[str] = []

    def look(query: str) -> str:
        """Look something up."""
        ran.append(query)
        if len(ran) < 2:
            raise ConnectionError("the index is down")
        return "found"

    rule = Rule(match="look", declared={"read_only": True})
    guarded = GuardedRunner(Policy([Retryable(auto=True)], rules=[rule]), clock=clock, sleep=clock.advance)
    made = agent(in_turn(Say(calls=(Call("look", {"query": "x"}),))), function_tool(look, **failure))
    read = envelope(outputs(guarded.run_sync(made, "go"))[0])
    assert (read["status"], read["result"], read["attempts"]) == ("success", "found", 2)


def test_a_tool_out_of_the_host_s_time_is_a_failure_of_its_kind() -> None:
    assert failed(timeout=0.01)["error_type"] == "timeout"
    read = failed(timeout=0.01, timeout_error_function=lambda context, error: "too slow")
    assert (read["error_type"], read["error_message"]) == ("timeout", "too slow")


def test_a_time_out_that_the_author_wants_raised_is_raised() -> None:
    with pytest.raises(ToolTimeoutError):
        failed(timeout=0.01, timeout_behavior="raise_exception")


# Results that end a run


def test_the_first_tool_s_result_is_the_answer_as_the_tool_gave_it() -> None:
    made = agent(in_turn(Say(calls=(search("x"),))), searching([]), tool_use_behavior="stop_on_first_tool")
    assert runner().run_sync(made, "go").final_output == "nothing found"


def test_a_guardrail_of_the_host_on_a_tool_s_output_has_the_last_word() -> None:
    @tool_output_guardrail
    def hide(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("hidden")

    def search(query: str) -> str:
        """Search."""
        return "a secret"

    tool = function_tool(search, tool_output_guardrails=[hide])
    made = agent(in_turn(Say(calls=(Call("search", {"query": "x"}),))), tool, tool_use_behavior="stop_on_first_tool")
    result = runner().run_sync(made, "go")
    assert result.final_output == "hidden"
    assert outputs(result) == ["hidden"]


def test_a_call_that_was_refused_ends_no_run() -> None:
    said = Say(calls=(search("x"), Call("look", {"query": "x"})))

    def look(query: str) -> str:
        """Look something up."""
        return "found"

    stops = {"stop_at_tool_names": ["search", "look"]}
    policy = Policy([ToolFilter(deny=("search",))])
    made = agent(in_turn(said), searching([]), look, tool_use_behavior=stops)
    assert GuardedRunner(policy).run_sync(made, "go").final_output == "found"
    made = agent(in_turn(Say(calls=(search("x"),))), searching([]), look, tool_use_behavior=stops)
    assert GuardedRunner(policy).run_sync(made, "go").final_output == "Done."


def test_a_function_that_ends_runs_sees_what_the_tools_gave_back() -> None:
    saw: list[Any] = []

    def decide(context: Any, results: list[Any]) -> ToolsToFinalOutputResult:
        saw.extend(result.output for result in results)
        return ToolsToFinalOutputResult(is_final_output=True, final_output="enough")

    made = agent(in_turn(Say(calls=(search("x"),))), searching([]), tool_use_behavior=decide)
    assert runner().run_sync(made, "go").final_output == "enough"
    assert saw == ["nothing found"]


# The end


def test_a_model_that_calls_on_is_told_the_digest_in_place_of_a_structured_output() -> None:
    made = agent(restless, searching([]), output_type=Answer)
    result = runner(CAP).run_sync(made, "go")
    assert "2 tool calls were made" in result.final_output
    assert [asked.choice for asked in seen(made)] == [None, None, "none", "none"]
    assert result.context_wrapper.usage.total_tokens == 4 * 15


def test_a_structured_output_is_asked_for_with_tools_off() -> None:
    made = agent(
        lambda asked: Say(output={"number": 3}) if asked.off else restless(asked), searching([]), output_type=Answer
    )
    assert runner(CAP).run_sync(made, "go").final_output == Answer(number=3)


def test_an_output_that_is_wrong_while_the_session_goes_on_is_the_host_s_own_error() -> None:
    with pytest.raises(Exception, match="Invalid JSON"):
        runner().run_sync(agent(lambda asked: Say("no JSON"), output_type=Answer), "go")


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
    assert result.context_wrapper.usage.total_tokens == 4 * 15


def test_a_final_answer_is_streamed_as_it_comes() -> None:
    result, heard = streamed(lambda asked: Say("so it is") if asked.off else restless(asked))
    assert heard == result.final_output == "so it is"


def test_a_streamed_model_that_says_nothing_is_asked_once_more() -> None:
    result, heard = streamed(lambda asked: Say("so it is" if asked.n else ""))
    assert heard == result.final_output == "so it is"


def test_the_last_turn_of_the_host_is_followed_by_an_answer() -> None:
    made = agent(lambda asked: Say("all that I found") if asked.off else restless(asked), searching([]))
    result = runner().run_sync(made, "go", max_turns=3)
    assert result.final_output == "all that I found"
    assert result.context_wrapper.usage.requests == 4


@pytest.mark.parametrize(
    ("guarded", "executions", "requests", "answer"),
    [(Runner, 10, 10, None), (runner(), 2, 7, "I know nothing of it.")],
    ids=["plain", "guarded"],
)
def test_a_stuck_model_costs_what_the_page_says(
    guarded: Any, executions: int, requests: int, answer: str | None
) -> None:
    ran: list[str] = []
    made, told = agent(stuck, searching(ran)), None
    with contextlib.suppress(MaxTurnsExceeded):
        told = guarded.run_sync(made, "go").final_output
    assert (len(ran), len(seen(made)), told) == (executions, requests, answer)


def test_whoever_wants_the_host_s_error_has_it() -> None:
    with pytest.raises(MaxTurnsExceeded):
        runner().run_sync(agent(restless, searching([])), "go", max_turns=3, error_handlers={"max_turns": None})
