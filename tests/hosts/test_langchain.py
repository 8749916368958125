"""
LangChain's `create_agent` and LangGraph's `ToolNode` behind the guards.
"""

import asyncio
import functools
import json

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import SecretStr

from guardrails import Budget, Policy
from guardrails.integrations.langchain import GuardrailsMiddleware
from tests.system.release.test_examples import PRINTED, printed

from .behaviours import Bank, Contract, Pages, in_turn, once, searching, stuck
from .driver import HELPER, MODEL, Call, Driver, Helper, Ran, Script, Way, waited
from .openai_model import URL, OpenAIModel


def model_of(script: Script, ran: Ran | None = None, outputs: Sequence[str] = ()) -> ChatOpenAI:
    scripted = OpenAIModel(script, ran, outputs)
    clients = {"http_client": scripted.http, "http_async_client": scripted.ahttp}
    return ChatOpenAI(model=MODEL, base_url=URL, api_key=SecretStr("-"), max_retries=0, stream_usage=True, **clients)


class Forcing(AgentMiddleware):
    """
    A user's own: forces a tool.
    """

    def __init__(self, choice: str) -> None:
        super().__init__()
        self.choice = choice

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tool_choice=self.choice))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(tool_choice=self.choice))


class Langchain(Driver):
    """
    `create_agent`.
    """

    name = "langchain"
    kind = GuardrailsMiddleware
    limits: Mapping[str, Any] = {"recursion_limit": 60}

    def __init__(self) -> None:
        self.saver = InMemorySaver()

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        outputs = () if way.output is None else (way.output.__name__,)
        made = [_pausing(one) if one.__name__ in way.pausing else tool(one) for one in tools]
        if way.helper is not None:
            made.append(self._helper(adapter, way.helper))
        own = [] if way.choice is None else [Forcing(way.choice)]
        agent = create_agent(
            model_of(script, ran, outputs),
            made,
            middleware=[*own, *([] if adapter is None else [adapter])],
            response_format=None if way.output is None else ToolStrategy(way.output),
            checkpointer=None if way.thread is None else self.saver,
        )
        given: Any = {"messages": [("user", way.prompt)]} if way.resume is None else Command(resume=way.resume)
        config: Any = {**self.limits}
        if way.thread is not None:
            config["configurable"] = {"thread_id": way.thread}
        state = agent.invoke(given, config) if way.sync else waited(self._state(agent, given, config, way, ran), way)
        ran.paused = [one.value["tool"] for one in state.get("__interrupt__", ())]
        ran.output = state.get("structured_response")
        last = state["messages"][-1]
        ran.answer = last.text if isinstance(last, AIMessage) and not last.tool_calls else None

    @staticmethod
    async def _state(agent: Any, given: Any, config: Any, way: Way, ran: Ran) -> Any:
        if not way.stream:
            return await agent.ainvoke(given, config)
        state: Any = {}
        async for mode, chunk in agent.astream(given, config, stream_mode=["messages", "values"]):
            if mode == "values":
                state = chunk
            elif isinstance(chunk[0], AIMessage) and chunk[0].text:
                ran.streamed.append(chunk[0].text)
        return state

    def _helper(self, adapter: Any, helper: Helper) -> BaseTool:
        agent = create_agent(
            model_of(helper.script),
            [tool(one) for one in helper.tools],
            middleware=[] if adapter is None else [adapter],
        )

        async def ask(task: str) -> str:
            """Ask a sub-agent."""
            done = await agent.ainvoke({"messages": [("user", task)]})
            return str(done["messages"][-1].text)

        return tool(HELPER)(ask)


def _pausing(function: Callable[..., Any]) -> BaseTool:
    @functools.wraps(function)
    def asked(**arguments: Any) -> Any:
        return function(**arguments) if interrupt({"tool": function.__name__}) else "the user said no"

    return tool(asked)


class TestLangchain(Contract, Pages):
    driver = Langchain


# What is LangChain's own


def invoked(script: Script, tools: Sequence[Any], policy: Policy, *prompts: str) -> list[Any]:
    """
    The messages of a thread of an agent behind *policy*, after all *prompts*.
    """
    agent = create_agent(
        model_of(script), list(tools), middleware=[GuardrailsMiddleware(policy)], checkpointer=InMemorySaver()
    )
    thread: Any = {"configurable": {"thread_id": "t"}}
    made = [agent.invoke({"messages": [("user", prompt)]}, thread) for prompt in prompts]
    return list(made[-1]["messages"])


@pytest.mark.parametrize("sync", [True, False])
def test_a_graph_of_ones_own_is_guarded_by_tool_node_and_ask(sync: bool) -> None:
    ran: list[str] = []
    host = Ran()
    guard = GuardrailsMiddleware(Policy.load("default"))
    tools = [tool(searching(ran))]
    model = model_of(stuck, host)

    def think(state: MessagesState) -> Any:
        return {"messages": guard.ask(model, state["messages"], tools, state=state)}

    async def athink(state: MessagesState) -> Any:
        return {"messages": await guard.aask(model, state["messages"], tools, state=state)}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think if sync else athink)
    graph.add_node("tools", ToolNode(tools, wrap_tool_call=guard.wrap_tool_call, awrap_tool_call=guard.awrap_tool_call))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    made, given = graph.compile(), {"messages": [("user", "go")]}
    done = made.invoke(given) if sync else asyncio.run(made.ainvoke(given))
    assert 1 <= len(ran) <= 3
    assert done["messages"][-1].text == "I know nothing of it."
    assert host.asked[-1].off


def test_a_user_who_writes_on_instead_of_answering_finds_a_conversation_that_is_whole() -> None:
    bank = Bank()
    done = invoked(once, [_pausing(bank.pay)], Policy([Budget(max_calls=3)]), "go", "never mind")
    assert [message.type for message in done] == ["human", "ai", "tool", "human", "ai"]
    assert "broken off" in done[2].text
    assert bank.paid == []


def test_images_and_artifacts_are_kept_and_a_limit_is_said_beside_them() -> None:
    shown = [{"type": "text", "text": "a hill"}, {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}]

    @tool(response_format="content_and_artifact")
    def shoot(n: int) -> Any:
        """Take a picture."""
        return shown, {"raw": n}

    script = in_turn(*(Call("shoot", {"n": n}) for n in range(2)))
    done = invoked(script, [shoot], Policy([Budget(max_calls=2)]), "go")
    first, last = (message for message in done if message.type == "tool")
    assert (first.content, first.artifact, last.artifact) == (shown, {"raw": 0}, {"raw": 1})
    assert last.content[:2] == shown
    assert json.loads(last.content[2]["text"])["limit_reached"] is True


@pytest.mark.system
def test_the_example_stops_a_stuck_agent_and_it_answers(tmp_path: Path) -> None:
    assert printed("langchain_agent", tmp_path) == PRINTED["langchain_agent"]
