"""
What is openai-agents' own: hand-overs, agents as tools, MCP servers, approvals, ends, and the real client of OpenAI.
"""

import asyncio
import inspect

from collections.abc import Callable
from typing import Any, ClassVar

import pytest


pytest.importorskip("agents")

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunState,
    SQLiteSession,
    function_tool,
)
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent, Tool
from openai import AsyncOpenAI

from guardrails import Budget, Duplicates, MemoryStore, Policy
from guardrails.integrations.openai_agents import GuardedRunner
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, call
from tests.openai_api import problems

from . import page
from .behaviours.base import envelope, in_turn, roaming, search, searching
from .driver import Call, Say, Script
from .page import openai_model
from .test_openai_agents import ScriptedModel, own_loop  # noqa: F401


@pytest.mark.system
def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with openai_model(monkeypatch, "I found nothing."):
        page.ran("openai-agents", capsys)


def agent(script: Script, *functions: Callable[..., Any], name: str = "main", **more: Any) -> Agent[Any]:
    """
    An agent whose model says what *script* says.
    """
    tools = [function_tool(each) if inspect.isfunction(each) else each for each in functions]
    return Agent(name=name, model=ScriptedModel(script, []), tools=tools, **more)


def outputs(result: Any) -> list[Any]:
    """
    What the model read of tools, as the host carries it.
    """
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


def runner(*guards: Any, **options: Any) -> GuardedRunner:
    """
    A runner behind *guards*; behind the policy `default` without any.
    """
    return GuardedRunner(Policy(guards) if guards else Policy.load("default"), **options)


CAP = Budget(max_calls=2)


def test_an_agent_that_is_handed_over_to_goes_on_with_the_budget() -> None:
    ran: list[str] = []
    over = in_turn(Say(calls=(search("mine"),)), Say(calls=(Call("transfer_to_other"),)))
    other = agent(roaming, searching(ran), name="other")
    result = runner(CAP).run_sync(agent(over, searching(ran), handoffs=[other]), "go")
    assert ran == ["mine", "q0"]
    assert result.final_output == "I know nothing of it."
    assert result.last_agent.name == "other"


def paying(paid: list[int]) -> Any:
    """
    The tool `pay`, which a person is to approve.
    """

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return f"paid {amount}"

    return pay


def payer(paid: list[int]) -> Agent[Any]:
    """
    An agent that pays two amounts.
    """
    calls = (Call("pay", {"amount": 5}, "c1"), Call("pay", {"amount": 6}, "c2"))
    return agent(lambda asked: Say("Done.") if asked.results else Say(calls=calls), paying(paid))


def test_a_run_with_a_name_goes_on_in_another_process() -> None:
    paid: list[int] = []
    store, options = MemoryStore(), {"run_config": RunConfig(group_id="t")}
    text = runner(CAP, store=store).run_sync(payer(paid), "go", **options).to_state().to_string()
    made = payer(paid)
    state = asyncio.run(RunState.from_string(made, text))
    for item in state.get_interruptions():
        state.approve(item)
    guarded = runner(CAP, store=store)
    assert guarded.run_sync(made, state, **options).final_output == "Done."
    assert paid == [5, 6]
    assert guarded._sessions.of("t").ledger.progress["calls_used"] == 2


def test_an_approval_inside_of_an_agent_that_is_a_tool_is_charged_once() -> None:
    paid: list[int] = []
    calls = Say(calls=(Call("pay", {"amount": 7}, "same"),))
    sub = agent(lambda asked: Say("paid it") if asked.results else calls, paying(paid), name="other")
    asks = Say(calls=(Call("other", {"input": "pay"}, "same"),))
    main = agent(lambda asked: Say("Done.") if asked.results else asks, sub.as_tool("other", "Ask the other."))
    guarded = runner(Budget(max_calls=10))
    options = {"run_config": RunConfig(group_id="t")}
    paused = guarded.run_sync(main, "go", **options)
    state = paused.to_state()
    for item in paused.interruptions:
        state.approve(item)
    result = guarded.run_sync(main, state, **options)
    assert (result.final_output, paid) == ("Done.", [7])
    assert envelope(outputs(result)[0])["progress"]["calls_used"] == 2


class Server(MCPServer):
    """
    A server of two tools.
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
            Tool(name="broken", input_schema={"type": "object", "properties": {}}),
        ]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.called.append(tool_name)
        text = TextContent(type="text", text="looked" if tool_name == "look" else "there is no such row")
        return CallToolResult(content=[text], is_error=tool_name == "broken")

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


def test_tools_of_an_mcp_server_are_guarded_and_its_errors_are_ours() -> None:
    server, look = Server(), Call("look", {"query": "x"})
    made = agent(in_turn(Say(calls=(look, look, Call("broken")))), mcp_servers=[server])
    told = [envelope(each) for each in outputs(runner(Duplicates()).run_sync(made, "go"))]
    assert sorted(server.called) == ["broken", "look"]
    assert [each["status"] for each in told] == ["success", "duplicate_call_blocked", "error"]
    assert told[2]["error_message"] == "there is no such row"


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


def test_the_last_turn_of_the_host_is_followed_by_an_answer() -> None:
    made = agent(roaming, searching([]))
    result = runner().run_sync(made, "go", max_turns=3)
    assert result.final_output == "I know nothing of it."
    assert result.context_wrapper.usage.requests == 3


@pytest.fixture(params=["responses", "chat"])
def wire(request: pytest.FixtureRequest) -> Any:
    return OpenAIResponsesModel if request.param == "responses" else OpenAIChatCompletionsModel


@pytest.mark.system
@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_calls_on_sends_nothing_that_the_api_refuses(wire: Any, streamed: bool) -> None:
    ran: list[str] = []

    @function_tool
    def search(query: str) -> str:
        """Search the web."""
        ran.append(query)
        return "nothing found"

    async def twice(server: ScriptedOpenAI) -> list[Any]:
        async with AsyncOpenAI(base_url=server.base_url, api_key="-", max_retries=0) as client:
            model = wire(model="gpt-5-mini", openai_client=client)
            agent = Agent(name="main", model=model, tools=[search], model_settings=ModelSettings(include_usage=True))
            runner = GuardedRunner(Policy([Budget(max_calls=2, max_tokens=100_000)]))
            thread, told = SQLiteSession("t"), []
            for _ in range(2):
                if streamed:
                    result: Any = runner.run_streamed(agent, "go", session=thread)
                    async for _event in result.stream_events():
                        pass
                else:
                    result = await runner.run(agent, "go", session=thread)
                told.append(result.final_output)
            assert runner.session("t").ledger.progress["tokens_left"] < 100_000
            thread.close()
            return told

    script = lambda body, n: Calls(call("search", {"query": f"q{n}"}), call("search", {"query": f"r{n}"}))  # noqa: E731
    with ScriptedOpenAI(script) as server:
        told = asyncio.run(twice(server))
        assert problems(server.requests) == []
        assert [body.get("tool_choice") for body in server.requests] == [None, *["none"] * 4]
    assert ran == ["q0", "r0"]
    assert all("2 tool calls were made" in each for each in told)
