"""
LangChain's `create_agent` and LangGraph's `ToolNode` behind the guards.
"""

import asyncio
import uuid

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest


pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from guardrails.integrations.langchain import GuardrailsMiddleware

from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Helper, Ran, Say, Script, cancelled


class ScriptedModel(BaseChatModel):
    """
    Says what a script says.
    """

    script: Any
    seen: Any
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
                chunks = [{**call, "args": __import__("json").dumps(call["args"])} for call in said.tool_calls]
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
            choice={"any": "required"}.get(self.bound.get("choice"), self.bound.get("choice")),
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
        for call in calls:
            known = {"name": call.tool, "args": call.arguments, "id": call.id or f"c-{uuid.uuid4()}"}
            if isinstance(call.arguments, str):
                made.invalid_tool_calls.append({**known, "type": "invalid_tool_call", "error": None})  # type: ignore[typeddict-item]
            else:
                made.tool_calls.append({**known, "type": "tool_call"})  # type: ignore[typeddict-item]
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

    def __init__(self) -> None:
        self.saver = InMemorySaver()

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsMiddleware:
        return GuardrailsMiddleware(guarded, **options)

    def run(
        self,
        adapter: Any,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        prompt: str = "go",
        thread: str | None = None,
        stream: bool = False,
        sync: bool = False,
        choice: str | None = None,
        output: Any = None,
        helper: Helper | None = None,
        pausing: Sequence[str] = (),
        resume: bool | None = None,
        cancel: Any = None,
    ) -> Ran:
        seen: list[Asked] = []
        outputs = frozenset() if output is None else frozenset({output.__name__})
        made = [_pausing(one) if one.__name__ in pausing else tool(one) for one in tools]
        if helper is not None:
            made.append(self._helper(adapter, helper))
        own = [] if choice is None else [Forcing(choice)]
        agent = create_agent(
            ScriptedModel(script=script, seen=seen, outputs=outputs),
            made,
            middleware=[*own, *([] if adapter is None else [adapter])],
            response_format=None if output is None else ToolStrategy(output),
            checkpointer=None if thread is None else self.saver,
        )
        given: Any = {"messages": [("user", prompt)]} if resume is None else Command(resume=resume)
        config: Any = {"recursion_limit": 60}
        if thread is not None:
            config["configurable"] = {"thread_id": thread}
        ran = Ran(asked=seen)
        try:
            if sync:
                state = self._sync(agent, given, config, ran, stream=stream)
            else:
                work = self._async(agent, given, config, ran, stream=stream)
                state = asyncio.run(work if cancel is None else cancelled(work, cancel))
        except BaseException as error:
            ran.error = error
            state = {}
        if thread is not None:
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
    import functools

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
