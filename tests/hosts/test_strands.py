"""
The agents of Strands behind the guards.
"""

import functools
import inspect
import json
import shutil
import tempfile
import uuid
import weakref

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest


pytest.importorskip("strands")

import strands.models

from strands import Agent, ToolContext, tool
from strands.middleware import InvokeModelStage
from strands.models import Model
from strands.multiagent import Swarm
from strands.session.file_session_manager import FileSessionManager

from guardrails import Budget, Policy
from guardrails.integrations.strands import GuardrailsHooks

from . import page
from .behaviours.base import in_turn, searching
from .behaviours.base import search as call_of
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Driver, Ran, Say, Script, Way, waited


class ScriptedModel(Model):
    """
    Says what a script says.
    """

    def __init__(self, script: Script, seen: list[Asked], outputs: frozenset[str] = frozenset()) -> None:
        self.script, self.seen, self.outputs = script, seen, outputs

    def update_config(self, **_: Any) -> None:
        """It has none."""

    def get_config(self) -> dict[str, Any]:
        return {"model_id": MODEL}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, *, tool_choice: Any = None, **_: Any
    ) -> AsyncIterator[Any]:
        specs = [spec for spec in tool_specs or () if spec["name"] not in self.outputs]
        asked = Asked(
            n=len(self.seen),
            tools=tuple(spec["name"] for spec in specs),
            choice=_choice(tool_choice),
            results=tuple(_results(messages, self.outputs).values()),
            schemas={spec["name"]: spec for spec in specs},
        )
        self.seen.append(asked)
        said = self.script(asked)
        yield {"messageStart": {"role": "assistant"}}
        if said.text:
            yield {"contentBlockStart": {"start": {}}}
            words = said.text.split(" ")
            for n, word in enumerate(words):
                yield {"contentBlockDelta": {"delta": {"text": word if n == len(words) - 1 else f"{word} "}}}
            yield {"contentBlockStop": {}}
        calls = list(said.calls)
        if said.output is not None:
            calls.append(Call(next(iter(self.outputs)), said.output))
        for call in calls:
            arguments = call.arguments
            if call.tool == HELPER and isinstance(arguments, Mapping):
                # An agent that is a tool calls what it takes `input`.
                arguments = {"input": arguments["task"]}
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            use = {"toolUseId": call.id or f"c-{uuid.uuid4()}", "name": call.tool}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            for half in (text[:3], text[3:]):
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": half}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        if said.usage is not None:
            into, out = said.usage
            usage = {"inputTokens": into, "outputTokens": out, "totalTokens": into + out}
            yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def _choice(choice: Any) -> str | None:
    if not choice:
        return None
    kind = next(iter(choice))
    return str(choice["tool"]["name"]) if kind == "tool" else {"any": "required"}.get(kind, kind)


def _calls(messages: Any) -> dict[str, str]:
    uses = [block["toolUse"] for message in messages for block in message["content"] if "toolUse" in block]
    return {use["toolUseId"]: use["name"] for use in uses}


def _results(messages: Any, outputs: frozenset[str] = frozenset()) -> dict[str, str]:
    names = _calls(messages)
    results = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
    return {
        result["toolUseId"]: "\n".join(block["text"] for block in result["content"] if "text" in block)
        for result in results
        if names.get(result["toolUseId"]) not in outputs
    }


class Strands(Driver):
    """
    `Agent`.
    """

    name = "strands"
    kind = GuardrailsHooks

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._interrupts: dict[str | None, Any] = {}

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        more: dict[str, Any] = {"hooks": [] if adapter is None else [adapter], "callback_handler": None}
        outputs = frozenset() if way.output is None else frozenset({way.output.__name__})
        made: list[Any] = [_pausing(one) if one.__name__ in way.pausing else tool(one) for one in tools]
        if way.helper is not None:
            own = [tool(one) for one in way.helper.tools]
            inner = Agent(ScriptedModel(way.helper.script, []), tools=own, **more)
            made.append(inner.as_tool(name=HELPER, description="Ask a sub-agent."))
        manager = None if way.thread is None else FileSessionManager(way.thread, storage_dir=self._folder)
        agent = Agent(ScriptedModel(script, ran.asked, outputs), tools=made, session_manager=manager, **more)
        if way.choice is not None:
            forced = {"tool": {"name": way.choice}}
            agent.add_middleware(InvokeModelStage.Input, lambda context: context.replace(tool_choice=forced))
        given: Any = way.prompt
        if way.resume is not None:
            asked = self._interrupts[way.thread]
            given = [{"interruptResponse": {"interruptId": one.id, "response": way.resume}} for one in asked]
        if way.sync and not way.stream:
            result = agent(given, structured_output_model=way.output)
        else:
            result = waited(self._async(agent, given, way.output, ran, stream=way.stream), way)
        ran.results = list(_results(agent.messages, outputs).values())
        if result.stop_reason == "interrupt":
            self._interrupts[way.thread] = result.interrupts
            ran.paused = [one.name for one in result.interrupts]
        else:
            answered = _results(agent.messages)
            ran.unanswered = [made for made in _calls(agent.messages) if made not in answered]
            ran.answer = "".join(block.get("text", "") for block in agent.messages[-1]["content"])
        ran.output = result.structured_output

    @staticmethod
    async def _async(agent: Any, given: Any, output: Any, ran: Ran, *, stream: bool) -> Any:
        if not stream:
            return await agent.invoke_async(given, structured_output_model=output)
        result: Any = None
        async for event in agent.stream_async(given, structured_output_model=output):
            if "data" in event:
                ran.streamed.append(event["data"])
            result = event.get("result", result)
        return result


def _pausing(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def asked(tool_context: ToolContext, **arguments: Any) -> Any:
        return function(**arguments) if tool_context.interrupt(function.__name__) else "the user said no"

    plain = inspect.signature(function)
    context = inspect.Parameter("tool_context", inspect.Parameter.KEYWORD_ONLY, annotation=ToolContext)
    asked.__signature__ = plain.replace(parameters=[*plain.parameters.values(), context])  # type: ignore[attr-defined]
    asked.__annotations__ = {**function.__annotations__, "tool_context": ToolContext}
    return tool(context=True)(asked)


class TestStrands(Contract):
    driver = Strands


# What is the host's own


def agent_of(script: Script, tools: Sequence[Any], *hooks: Any, seen: Any = None, **more: Any) -> Agent:
    model = ScriptedModel(script, [] if seen is None else seen, more.pop("outputs", frozenset()))
    return Agent(model, tools=list(tools), hooks=list(hooks), callback_handler=None, **more)


def results(agent: Any) -> list[Any]:
    return [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]


def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script: Script = lambda asked: Say("I found nothing.") if asked.off else Say(calls=(call_of("x"),))  # noqa: E731
    monkeypatch.setattr(strands.models, "BedrockModel", lambda *_, **__: ScriptedModel(script, []))
    page.ran("Strands Agents", capsys)


def test_the_agents_of_a_swarm_have_shares_of_one_budget() -> None:
    ran: list[str] = []
    policy = Policy([Budget(max_calls=9)])
    guard = GuardrailsHooks(policy)
    over = Say(calls=(Call("handoff_to_agent", {"agent_name": "two", "message": "go on"}),))
    one = agent_of(in_turn(Say(calls=(call_of("x"),)), over), [tool(searching(ran))], guard, name="one")
    two = agent_of(in_turn(Say(calls=(call_of("x"),))), [tool(searching(ran))], guard, name="two")
    done = Swarm([one, two], hooks=[guard])("go", invocation_state={"session_id": "t"})
    assert [node.node_id for node in done.node_history] == ["one", "two"]
    assert ran == ["x", "x"]
    assert policy.session("t").ledger.progress == {"calls_used": 3, "calls_left": 6}
