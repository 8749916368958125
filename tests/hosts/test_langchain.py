"""
LangChain's `create_agent` and LangGraph's `ToolNode` behind the guards.
"""

import asyncio
import functools
import json
import uuid

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import pytest


pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, InjectedToolArg, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, ToolRuntime, tools_condition
from langgraph.types import Command, interrupt
from pydantic import Field, SecretStr

from guardrails import Budget, MemorySink, Policy
from guardrails.integrations.langchain import GuardrailsMiddleware
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, call
from tests.openai_api import problems

from . import page
from .behaviours.base import in_turn, searching, stuck
from .behaviours.pauses import Bank, once
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Helper, Ran, Say, Script, Way, cancelled
from .page import openai_model


class ScriptedModel(BaseChatModel):
    """
    Says what a script says.
    """

    script: Any
    seen: Any = Field(repr=False)
    """Not shown: the host shows the model to its tracing on each request."""
    outputs: frozenset[str] = frozenset()
    """Names of the host's own tools for structured output."""
    model_name: str = MODEL
    bound: Mapping[str, Any] = {}

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **more: Any) -> Any:
        made = [convert_to_openai_tool(one)["function"] for one in tools]
        return self.model_copy(update={"bound": {"tools": made, "choice": tool_choice}})

    def _generate(self, messages: list[BaseMessage], *more: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._says(messages))])

    def _stream(self, messages: list[BaseMessage], *more: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        said = self._says(messages)
        words = str(said.content).split(" ")
        for n, word in enumerate(words):
            last = n == len(words) - 1
            whole: dict[str, Any] = {}
            if last:
                chunks = [{**call, "args": json.dumps(call["args"])} for call in said.tool_calls]
                chunks = [
                    {key: call[key] for key in ("name", "args", "id")} | {"index": at} for at, call in enumerate(chunks)
                ]
                whole = {"tool_call_chunks": chunks, "usage_metadata": said.usage_metadata}
            text = word if last else f"{word} "
            message = AIMessageChunk(
                content=text, id=said.id, response_metadata={"model_name": MODEL} if last else {}, **whole
            )
            yield ChatGenerationChunk(message=message)

    def _says(self, messages: list[BaseMessage]) -> AIMessage:
        tools = [one for one in self.bound.get("tools", ()) if one["name"] not in self.outputs]
        asked = Asked(
            n=len(self.seen),
            tools=tuple(one["name"] for one in tools),
            choice="required" if self.bound.get("choice") == "any" else self.bound.get("choice"),
            results=tuple(
                message.text
                for message in messages
                if isinstance(message, ToolMessage) and message.name not in self.outputs
            ),
            schemas={one["name"]: one for one in tools},
        )
        self.seen.append(asked)
        said: Say = self.script(asked)
        made = AIMessage(said.text, id=f"m-{uuid.uuid4()}", response_metadata={"model_name": MODEL})
        calls = list(said.calls)
        if said.output is not None:
            calls.append(Call(next(iter(self.outputs)), said.output))
        for each in calls:
            known = {"name": each.tool, "args": each.arguments, "id": each.id or f"c-{uuid.uuid4()}"}
            if isinstance(each.arguments, str):
                made.invalid_tool_calls.append({**known, "type": "invalid_tool_call", "error": None})
            else:
                made.tool_calls.append({**known, "type": "tool_call"})
        if said.usage is not None:
            into, out = said.usage
            made.usage_metadata = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
        return made


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


class Driver:
    """
    `create_agent`.
    """

    name = "langchain"
    cannot: ClassVar[Mapping[str, str]] = {}
    limits: Mapping[str, Any] = {"recursion_limit": 60}

    def __init__(self) -> None:
        self.saver = InMemorySaver()

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsMiddleware:
        return GuardrailsMiddleware(guarded, **options)

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        way = Way(**how)
        seen: list[Asked] = []
        outputs = frozenset() if way.output is None else frozenset({way.output.__name__})
        made = [_pausing(one) if one.__name__ in way.pausing else tool(one) for one in tools]
        if way.helper is not None:
            made.append(self._helper(adapter, way.helper))
        own = [] if way.choice is None else [Forcing(way.choice)]
        agent = create_agent(
            ScriptedModel(script=script, seen=seen, outputs=outputs),
            made,
            middleware=[*own, *([] if adapter is None else [adapter])],
            response_format=None if way.output is None else ToolStrategy(way.output),
            checkpointer=None if way.thread is None else self.saver,
        )
        given: Any = {"messages": [("user", way.prompt)]} if way.resume is None else Command(resume=way.resume)
        config: Any = {**self.limits}
        if way.thread is not None:
            config["configurable"] = {"thread_id": way.thread}
        ran = Ran(asked=seen)
        try:
            if way.sync:
                state = self._sync(agent, given, config, ran, stream=way.stream)
            else:
                work = self._async(agent, given, config, ran, stream=way.stream)
                state = asyncio.run(work if way.cancel is None else cancelled(work, way.cancel))
        except BaseException as error:
            ran.error = error
            state = {}
        if way.thread is not None:
            state = agent.get_state(config).values | {"__interrupt__": agent.get_state(config).interrupts}
        return _told(ran, state, outputs)

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
            ScriptedModel(script=helper.script, seen=[]),
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


def _told(ran: Ran, state: Mapping[str, Any], outputs: frozenset[str]) -> Ran:
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
    return ran


class TestLangchain(Contract):
    driver = Driver


# What is LangChain's own


def agent_of(script: Script, tools: Sequence[Any], guard: Any, *, seen: Any = None, **more: Any) -> Any:
    model = ScriptedModel(script=script, seen=[] if seen is None else seen, outputs=more.pop("outputs", frozenset()))
    return create_agent(model, list(tools), middleware=[*more.pop("before", ()), guard, *more.pop("after", ())], **more)


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


@pytest.mark.system
def test_a_real_client_that_ignores_tools_off_sends_nothing_that_the_api_refuses() -> None:
    policy = Policy([Budget(max_calls=2, max_tokens=100_000)])
    with ScriptedOpenAI(lambda body, n: Calls(*(call("search", {"query": f"{q}{n}"}) for q in "qr"))) as server:
        model = ChatOpenAI(model="gpt-5-mini", base_url=server.base_url, api_key=SecretStr("-"), max_retries=0)
        agent = create_agent(model, [tool(searching([]))], middleware=[GuardrailsMiddleware(policy)])
        done = agent.invoke(asked_by(), in_thread())
        assert problems(server.requests) == []
        assert len(server.requests) == 3
    session = policy.session("t")
    assert (done["messages"][-1].text, done["messages"][-1].tool_calls) == (session.digest(), [])
    assert session.ledger.progress["tokens_left"] < 100_000


@pytest.mark.parametrize("sync", [True, False])
def test_a_graph_of_ones_own_is_guarded_by_tool_node_and_ask(sync: bool) -> None:
    ran: list[str] = []
    seen: list[Asked] = []
    guard = GuardrailsMiddleware(Policy.load("default"))
    tools = [tool(searching(ran))]
    model = ScriptedModel(script=stuck, seen=seen)

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
    assert seen[-1].off


def test_what_a_person_is_asked_by_the_middleware_of_langchain_is_charged_once() -> None:
    bank, policy = Bank(), Policy([Budget(max_calls=3)])
    agent = agent_of(
        once,
        [tool(bank.pay)],
        GuardrailsMiddleware(policy),
        after=[HumanInTheLoopMiddleware(interrupt_on={"pay": True})],
        checkpointer=InMemorySaver(),
    )
    held = agent.invoke(asked_by(), in_thread())
    assert (len(held["__interrupt__"]), bank.paid) == (1, [])
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), in_thread())
    assert (bank.paid, done["messages"][-1].text) == ([5], "Done.")
    assert policy.session("t").ledger.progress["calls_used"] == 1


def test_a_user_who_writes_on_instead_of_answering_finds_a_conversation_that_is_whole() -> None:
    bank, policy = Bank(), Policy([Budget(max_calls=3)])
    agent = agent_of(once, [_pausing(bank.pay)], GuardrailsMiddleware(policy), checkpointer=InMemorySaver())
    agent.invoke(asked_by(), in_thread())
    done = agent.invoke(asked_by("never mind"), in_thread())
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool", "human", "ai"]
    assert "broken off" in results(done)[0].text
    assert bank.paid == []


def test_what_only_the_graph_knows_is_no_argument_of_the_model() -> None:
    got: list[Any] = []

    @tool
    def look(
        query: str,
        state: Annotated[Any, InjectedState],
        runtime: ToolRuntime,
        note: Annotated[str, InjectedToolArg] = "-",
    ) -> str:
        """Look."""
        got.append((query, len(state["messages"]), runtime.tool_call_id, note))
        return "seen"

    sink = MemorySink()
    guard = GuardrailsMiddleware(Policy.load("default"), records=sink)
    script = in_turn(Say(calls=(Call("look", {"query": "x"}, "c1"),)), Say(calls=(Call("look", {}),)))
    done = agent_of(script, [look], guard).invoke(asked_by())
    assert got == [("x", 2, "c1", "-")]
    assert json.loads(results(done)[1].text)["errors"][0]["field"] == "query"
    assert len([one for one in sink.records if one["event"] == "call"]) == 2


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


def test_a_command_of_a_tool_updates_the_graph_and_its_message_is_an_envelope() -> None:
    @tool
    def note(text: str, runtime: ToolRuntime) -> Command[Any]:
        """Note a text."""
        said = ToolMessage(f"noted {text}", tool_call_id=runtime.tool_call_id or "")
        return Command(update={"messages": [said], "notes": [text]})

    class Notes(AgentState[Any]):
        notes: list[str]

    script = in_turn(Say(calls=(Call("note", {"text": "x"}),)))
    guard = GuardrailsMiddleware(Policy.load("default"))
    done = agent_of(script, [note], guard, state_schema=Notes).invoke(asked_by())
    assert done["notes"] == ["x"]
    assert json.loads(results(done)[0].text)["result"] == "noted x"
