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
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import SecretStr

from guardrails import Budget, Policy
from guardrails.integrations.langchain import GuardrailsMiddleware
from tests.system.release.examples import PRINTED, printed

from . import page
from .behaviours.base import in_turn, searching, stuck
from .behaviours.pauses import Bank, once
from .contract import Contract
from .driver import HELPER, MODEL, Call, Driver, Helper, Ran, Say, Script, Way, waited
from .openai_model import URL, OpenAIModel
from .page import openai_model


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
        if way.sync:
            state = self._sync(agent, given, config, ran, stream=way.stream)
        else:
            state = waited(self._async(agent, given, config, ran, stream=way.stream), way)
        if way.thread is not None:
            state = agent.get_state(config).values | {"__interrupt__": agent.get_state(config).interrupts}
        _note(ran, state, outputs)

    @staticmethod
    def _sync(agent: Any, given: Any, config: Any, ran: Ran, *, stream: bool) -> Any:
        if not stream:
            return agent.invoke(given, config)
        state: Any = {}
        for mode, chunk in agent.stream(given, config, stream_mode=["messages", "values"]):
            state = _heard(ran, mode, chunk, state)
        return state

    @staticmethod
    async def _async(agent: Any, given: Any, config: Any, ran: Ran, *, stream: bool) -> Any:
        if not stream:
            return await agent.ainvoke(given, config)
        state: Any = {}
        async for mode, chunk in agent.astream(given, config, stream_mode=["messages", "values"]):
            state = _heard(ran, mode, chunk, state)
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


def _heard(ran: Ran, mode: str, chunk: Any, state: Any) -> Any:
    if mode == "values":
        return chunk
    message, _ = chunk
    if isinstance(message, AIMessage) and message.text:
        ran.streamed.append(message.text)
    return state


def _note(ran: Ran, state: Mapping[str, Any], outputs: Sequence[str]) -> None:
    messages = state.get("messages", [])
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    ran.paused = [one.value["tool"] for one in state.get("__interrupt__", ())]
    ran.results = [message.text for message in results.values() if message.name not in outputs]
    for message in messages if not ran.paused else ():
        if isinstance(message, AIMessage):
            calls = [*message.tool_calls, *message.invalid_tool_calls]
            ran.unanswered += [str(call["id"]) for call in calls if call["id"] not in results]
    ran.output = state.get("structured_response")
    last = messages[-1] if messages else None
    if isinstance(last, AIMessage) and not last.tool_calls:
        ran.answer = last.text


class TestLangchain(Contract):
    driver = Langchain


# What is LangChain's own


def agent_of(script: Script, tools: Sequence[Any], guard: Any, **more: Any) -> Any:
    return create_agent(
        model_of(script), list(tools), middleware=[*more.pop("before", ()), guard, *more.pop("after", ())], **more
    )


def asked_by(prompt: str = "go") -> Any:
    return {"messages": [("user", prompt)]}


def in_thread(name: str = "t") -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 60}


def results(state: Any) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


@pytest.mark.system
def test_the_programs_of_the_page_print_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with openai_model(monkeypatch, "I found nothing."):
        page.ran("LangChain and LangGraph", capsys)


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
    made = graph.compile()
    done = made.invoke(asked_by()) if sync else asyncio.run(made.ainvoke(asked_by()))
    assert 1 <= len(ran) <= 3
    assert done["messages"][-1].text == "I know nothing of it."
    assert host.asked[-1].off


def test_a_user_who_writes_on_instead_of_answering_finds_a_conversation_that_is_whole() -> None:
    bank, policy = Bank(), Policy([Budget(max_calls=3)])
    agent = agent_of(once, [_pausing(bank.pay)], GuardrailsMiddleware(policy), checkpointer=InMemorySaver())
    agent.invoke(asked_by(), in_thread())
    done = agent.invoke(asked_by("never mind"), in_thread())
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool", "human", "ai"]
    assert "broken off" in results(done)[0].text
    assert bank.paid == []


def test_images_and_artifacts_are_kept_and_a_limit_is_said_beside_them() -> None:
    picture = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}

    @tool(response_format="content_and_artifact")
    def shoot(n: int) -> Any:
        """Take a picture."""
        return [{"type": "text", "text": "a hill"}, picture], {"raw": n}

    script = in_turn(*(Say(calls=(Call("shoot", {"n": n}),)) for n in range(2)))
    done = agent_of(script, [shoot], GuardrailsMiddleware(Policy([Budget(max_calls=2)]))).invoke(asked_by())
    first, last = results(done)
    assert first.content[1] == picture
    assert first.artifact == {"raw": 0}
    assert last.content[:2] == [{"type": "text", "text": "a hill"}, picture]
    assert json.loads(last.content[2]["text"])["limit_reached"] is True
    assert last.artifact == {"raw": 1}


@pytest.mark.system
def test_the_example_stops_a_stuck_agent_and_it_answers(tmp_path: Path) -> None:
    assert printed("langchain_agent", tmp_path) == PRINTED["langchain_agent"]
