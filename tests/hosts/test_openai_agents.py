"""
openai-agents behind the guards: its runs, hand-overs, agents as tools, MCP servers, approvals, streams.
"""

import asyncio
import json

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar
from uuid import uuid4

import pytest


pytest.importorskip("agents")

from agents import (
    Agent,
    Model,
    ModelResponse,
    ModelSettings,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.usage import Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from pydantic import BaseModel

from guardrails.integrations.openai_agents import GuardedRunner

from .contract import Contract
from .driver import HELPER, MODEL, Asked, Ran, Say, Script, Way, cancelled


set_tracing_disabled(True)


@pytest.fixture(autouse=True)
def own_loop() -> Iterator[None]:
    """
    The event loop that `run_sync` of the host uses, and leaves open.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    made = [loop]
    with suppress(RuntimeError):
        made.append(asyncio.get_event_loop())
    for each in made:
        each.close()
    asyncio.set_event_loop(None)


class ScriptedModel(Model):
    """
    Says what a script says.
    """

    model = MODEL

    def __init__(self, script: Script, seen: list[Asked]) -> None:
        self.script, self.seen = script, seen

    def says(self, given: Any, settings: ModelSettings, tools: Sequence[Any], handoffs: Sequence[Any]) -> Say:
        items = [] if isinstance(given, str) else given
        choice: Any = settings.tool_choice
        asked = Asked(
            n=len(self.seen),
            tools=(*(tool.name for tool in tools), *(handoff.tool_name for handoff in handoffs)),
            choice=choice,
            results=tuple(_text(item["output"]) for item in items if item.get("type") == "function_call_output"),
            schemas={tool.name: tool.params_json_schema for tool in tools},
        )
        self.seen.append(asked)
        return self.script(asked)

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *more: Any, **named: Any
    ) -> Any:
        handoffs = more[1] if more else named["handoffs"]
        said = self.says(input, model_settings, tools, handoffs)
        into, out = said.usage or (0, 0)
        used = Usage(requests=1, input_tokens=into, output_tokens=out, total_tokens=into + out)
        return ModelResponse(output=_items(said), usage=used, response_id=f"resp_{uuid4()}")

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *more: Any, **named: Any
    ) -> AsyncIterator[Any]:
        said = self.says(input, model_settings, tools, named["handoffs"])
        items = _items(said)
        at: dict[str, Any] = {"output_index": 0, "sequence_number": 0}
        for n, word in enumerate(said.text.split(" ") if said.text else ()):
            text = word if n == 0 else f" {word}"
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta", delta=text, item_id="m", content_index=0, logprobs=[], **at
            )
        for item in items:
            yield ResponseOutputItemDoneEvent(type="response.output_item.done", item=item, **at)
        yield ResponseCompletedEvent(
            type="response.completed", response=_response(items, said.usage), sequence_number=0
        )


def _items(said: Say) -> list[Any]:
    text = said.text if said.output is None else json.dumps(said.output)
    made: list[Any] = []
    if text:
        part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
        made.append(
            ResponseOutputMessage(
                id=f"m-{uuid4()}", type="message", role="assistant", status="completed", content=[part]
            )
        )
    for call in said.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        made.append(
            ResponseFunctionToolCall(
                type="function_call",
                name=call.tool,
                arguments=arguments,
                call_id=call.id or f"c-{uuid4()}",
                id=f"f-{uuid4()}",
            )
        )
    return made


def _response(items: list[Any], usage: tuple[int, int] | None) -> Response:
    told = None
    if usage is not None:
        into, out = usage
        said: dict[str, Any] = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
        details = {"cached_tokens": 0, "cache_write_tokens": 0}
        told = ResponseUsage.model_validate(
            {**said, "input_tokens_details": details, "output_tokens_details": {"reasoning_tokens": 0}}
        )
    return Response(
        id=f"resp_{uuid4()}",
        created_at=0,
        model=MODEL,
        object="response",
        output=items,
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        usage=told,
    )


def _text(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output)


class Task(BaseModel):
    """
    What a sub-agent is asked.
    """

    task: str


class Driver:
    """
    `Runner`, and `GuardedRunner` in its place.
    """

    name = "openai_agents"
    cannot: ClassVar[Mapping[str, str]] = {}
    limits: Mapping[str, Any] = {"max_turns": 60}

    def __init__(self) -> None:
        self.threads: dict[str, SQLiteSession] = {}
        self.states: dict[str | None, Any] = {}

    def adapter(self, guarded: Any, **options: Any) -> GuardedRunner:
        return GuardedRunner(guarded, **options)

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        way = Way(**how)
        ran = Ran()
        made: list[Any] = [function_tool(each, needs_approval=each.__name__ in way.pausing) for each in tools]
        if way.helper is not None:
            own = [function_tool(each) for each in way.helper.tools]
            sub = Agent(name="sub", model=ScriptedModel(way.helper.script, []), tools=own)
            made.append(sub.as_tool(HELPER, "Ask a sub-agent.", parameters=Task))
        agent = Agent(
            name="main",
            model=ScriptedModel(script, ran.asked),
            tools=made,
            output_type=way.output,
            model_settings=ModelSettings(tool_choice=way.choice),
        )
        options: dict[str, Any] = {**self.limits}
        if way.thread is not None:
            options["session"] = self.threads.setdefault(way.thread, SQLiteSession(way.thread))
        runner = Runner if adapter is None else adapter
        try:
            given: Any = way.prompt
            if way.resume:
                given = asyncio.run(RunState.from_json(agent, self.states[way.thread]))
                for item in given.get_interruptions():
                    given.approve(item)
            if way.stream:
                result = asyncio.run(_streamed(runner, agent, given, options, ran))
            elif way.sync:
                result = runner.run_sync(agent, given, **options)
            else:
                work = runner.run(agent, given, **options)
                result = asyncio.run(work if way.cancel is None else cancelled(work, way.cancel))
        except BaseException as error:
            ran.error = error
            return ran
        items = result.to_input_list() if way.thread is None else asyncio.run(self.threads[way.thread].get_items())
        self.states[way.thread] = result.to_state().to_json() if result.interruptions else None
        return _told(ran, result, items, structured=way.output is not None)


async def _streamed(runner: Any, agent: Any, given: Any, options: Any, ran: Ran) -> Any:
    result = runner.run_streamed(agent, given, **options)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            ran.streamed.append(event.data.delta)
    return result


def _told(ran: Ran, result: Any, items: list[Any], *, structured: bool) -> Ran:
    ran.paused = [str(item.tool_name) for item in result.interruptions]
    results = {item["call_id"]: item for item in items if item.get("type") == "function_call_output"}
    ran.results = [_text(item["output"]) for item in results.values()]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    ran.unanswered = [] if ran.paused else [call for call in calls if call not in results]
    ran.output = result.final_output if structured else None
    ran.answer = result.final_output if isinstance(result.final_output, str) else None
    return ran


class TestOpenaiAgents(Contract):
    driver = Driver
