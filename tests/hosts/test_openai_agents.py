"""
openai-agents behind the guards: its runs, hand-overs, agents as tools, MCP servers, approvals, streams.
"""

import asyncio
import inspect

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest


pytest.importorskip("agents")

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent, Tool

from guardrails import Budget, Duplicates, Policy
from guardrails import Tool as GuardedTool
from guardrails.integrations.openai_agents import GuardedRunner

from .behaviours import Bank, Contract, Pages, envelope, in_turn, roaming, search, searching
from .driver import HELPER, MODEL, Call, Driver, Ran, Say, Script, Task, Way, looped, waited
from .openai_model import OpenAIModel


set_tracing_disabled(True)
pytestmark = pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")


@pytest.fixture(autouse=True)
def own_loop() -> Iterator[None]:
    """
    The event loop that `run_sync` of the host uses, and leaves open.
    """
    with looped():
        yield


def model_of(script: Script, ran: Ran | None = None) -> OpenAIChatCompletionsModel:
    return OpenAIChatCompletionsModel(model=MODEL, openai_client=OpenAIModel(script, ran).client)


class OpenaiAgents(Driver):
    """
    `Runner`, and `GuardedRunner` in its place.
    """

    name = "openai_agents"
    kind = GuardedRunner
    limits: Mapping[str, Any] = {"max_turns": 60}

    def __init__(self) -> None:
        self.threads: dict[str, SQLiteSession] = {}
        self.states: dict[str | None, Any] = {}

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        made: list[Any] = [function_tool(each, needs_approval=each.__name__ in way.pausing) for each in tools]
        if way.helper is not None:
            own = [function_tool(each) for each in way.helper.tools]
            sub = Agent(name="sub", model=model_of(way.helper.script), tools=own)
            made.append(sub.as_tool(HELPER, "Ask a sub-agent.", parameters=Task))
        settings = ModelSettings(tool_choice=way.choice, include_usage=True)
        about: Any = {"model": model_of(script, ran), "output_type": way.output, "model_settings": settings}
        agent = Agent(name="main", tools=made, **about)
        options: dict[str, Any] = {**self.limits}
        if way.thread is not None:
            options["session"] = self.threads.setdefault(way.thread, SQLiteSession(way.thread))
        runner, given = Runner if adapter is None else adapter, way.prompt
        if way.resume:
            given = asyncio.run(RunState.from_json(agent, self.states[way.thread]))
            for item in given.get_interruptions():
                given.approve(item)
        if way.stream:
            result = asyncio.run(_streamed(runner, agent, given, options, ran))
        elif way.sync:
            result = runner.run_sync(agent, given, **options)
        else:
            result = waited(runner.run(agent, given, **options), way)
        self.states[way.thread] = result.to_state().to_json() if result.interruptions else None
        ran.paused = [str(item.tool_name) for item in result.interruptions]
        ran.output = None if way.output is None else result.final_output
        ran.answer = result.final_output if isinstance(result.final_output, str) else None


async def _streamed(runner: Any, agent: Any, given: Any, options: Any, ran: Ran) -> Any:
    result = runner.run_streamed(agent, given, **options)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            ran.streamed.append(event.data.delta)
    return result


class TestOpenaiAgents(Contract, Pages):
    driver = OpenaiAgents


# The host alone


def agent(script: Script, *functions: Callable[..., Any], name: str = "main", **more: Any) -> Agent[Any]:
    """
    An agent whose model says what *script* says.
    """
    tools = [function_tool(each) if inspect.isfunction(each) else each for each in functions]
    return Agent(name=name, model=model_of(script), tools=tools, **more)


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


def test_an_agent_that_is_handed_over_to_goes_on_with_the_budget() -> None:
    ran: list[str] = []
    over = in_turn(search("mine"), Call("transfer_to_other"))
    other = agent(roaming, searching(ran), name="other")
    result = runner(Budget(max_calls=2)).run_sync(agent(over, searching(ran), handoffs=[other]), "go")
    assert ran == ["mine", "q0"]
    assert result.final_output == "I know nothing of it."
    assert result.last_agent.name == "other"


def test_an_approval_inside_of_an_agent_that_is_a_tool_is_charged_once() -> None:
    bank, call = Bank(), Say(calls=(Call("pay", {"amount": 7}, "same"),))
    pays = function_tool(bank.pay, needs_approval=True)
    sub = agent(lambda asked: Say("paid it") if asked.results else call, pays, name="other")
    asks = Say(calls=(Call("other", {"input": "pay"}, "same"),))
    main = agent(lambda asked: Say("Done.") if asked.results else asks, sub.as_tool("other", "Ask the other."))
    guarded = runner(Budget(max_calls=10))
    options = {"run_config": RunConfig(group_id="t")}
    paused = guarded.run_sync(main, "go", **options)
    state = paused.to_state()
    for item in paused.interruptions:
        state.approve(item)
    result = guarded.run_sync(main, state, **options)
    assert (result.final_output, bank.paid) == ("Done.", [7])
    assert envelope(outputs(result)[0])["progress"]["calls_used"] == 2


async def nothing(*_: Any) -> None: ...


class Server(MCPServer):
    """
    A server of two tools.
    """

    name: ClassVar[str] = "shelf"
    connect = cleanup = list_prompts = get_prompt = nothing

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Tool]:
        return [Tool(name=name, input_schema={"type": "object", "properties": {}}) for name in ("look", "broken")]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.called.append(tool_name)
        text = TextContent(type="text", text="looked" if tool_name == "look" else "there is no such row")
        return CallToolResult(content=[text], is_error=tool_name == "broken")


def test_tools_of_an_mcp_server_are_guarded_and_its_errors_are_ours() -> None:
    server, look = Server(), Call("look")
    made = agent(in_turn((look, look, Call("broken"))), mcp_servers=[server])
    told = [envelope(each) for each in outputs(runner(Duplicates()).run_sync(made, "go"))]
    assert sorted(server.called) == ["broken", "look"]
    assert [each["status"] for each in told] == ["success", "duplicate_call_blocked", "error"]
    assert told[2]["error_message"] == "there is no such row"


def test_a_tool_with_words_of_its_own_that_timed_out_is_not_made_again() -> None:
    ran: list[int] = []

    @function_tool(failure_error_function=lambda _, error: f"the bank says {error}")
    def pay(amount: int) -> None:
        ran.append(amount)
        raise TimeoutError("no answer")

    policy, call = Policy(tools=[GuardedTool(name="pay", idempotent=False)]), Call("pay", {"amount": 7})
    told = outputs(GuardedRunner(policy).run_sync(agent(in_turn(call, call), pay), "go"))
    assert envelope(told[0])["error_message"] == "the bank says no answer"
    assert (envelope(told[1])["code"], ran) == ("call.uncertain", [7])


def test_the_last_turn_of_the_host_is_one_for_an_answer_unless_a_tool_may_end_the_run() -> None:
    result = runner().run_sync(agent(roaming, searching([])), "go", max_turns=3)
    assert (result.final_output, result.context_wrapper.usage.requests) == ("I know nothing of it.", 3)
    ends = agent(roaming, searching([]), tool_use_behavior="stop_on_first_tool")
    assert runner().run_sync(ends, "go", max_turns=1).final_output == "nothing found"
