"""
The agents of Strands behind the guards: the contract, and what is theirs alone.
"""

import functools
import inspect
import shutil
import tempfile
import weakref

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest


pytest.importorskip("strands")

import strands.models

from strands import Agent, ToolContext, tool
from strands.middleware import InvokeModelStage
from strands.models.openai import OpenAIModel
from strands.multiagent import Swarm
from strands.session.file_session_manager import FileSessionManager

from guardrails import Budget, Policy
from guardrails.integrations.strands import GuardrailsHooks

from .behaviours import Contract, Pages, in_turn, searching
from .behaviours import search as call_of
from .driver import HELPER, MODEL, Call, Driver, Ran, Say, Script, Way, waited
from .openai_model import OpenAIModel as Scripted


def model_of(script: Script, ran: Ran | None = None, outputs: Sequence[str] = ()) -> OpenAIModel:
    return OpenAIModel(client=Scripted(script, ran, outputs).client, model_id=MODEL)


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
        outputs = () if way.output is None else (way.output.__name__,)
        made: list[Any] = [_pausing(one) if one.__name__ in way.pausing else tool(one) for one in tools]
        if way.helper is not None:
            inner = Agent(model_of(way.helper.script), tools=[tool(one) for one in way.helper.tools], **more)

            async def ask(task: str) -> str:
                """Ask a sub-agent."""
                return str(await inner.invoke_async(task))

            made.append(tool(name=HELPER)(ask))
        manager = None if way.thread is None else FileSessionManager(way.thread, storage_dir=self._folder)
        agent = Agent(model_of(script, ran, outputs), tools=made, session_manager=manager, **more)
        if way.choice is not None:
            forced = {"tool": {"name": way.choice}}
            agent.add_middleware(InvokeModelStage.Input, lambda context: context.replace(tool_choice=forced))
        given: Any = way.prompt
        if way.resume is not None:
            asked = self._interrupts[way.thread]
            given = [{"interruptResponse": {"interruptId": one.id, "response": way.resume}} for one in asked]
        if way.sync:
            result = agent(given, structured_output_model=way.output)
        else:
            result = waited(self._async(agent, given, way.output, ran), way)
        # The host sends an empty list of tools where there are none: not every server takes it.
        ran.sent = [{name: value for name, value in body.items() if value != []} for body in ran.sent]
        ran.output = result.structured_output
        if result.stop_reason == "interrupt":
            self._interrupts[way.thread] = result.interrupts
            ran.paused = [one.name for one in result.interrupts]
        else:
            ran.answer = "".join(block.get("text", "") for block in agent.messages[-1]["content"])

    @contextmanager
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        script: Script = lambda asked: Say("I found nothing.") if asked.off else Say(calls=(call_of("x"),))  # noqa: E731
        monkeypatch.setattr(strands.models, "BedrockModel", lambda *_, **__: model_of(script))
        yield

    @staticmethod
    async def _async(agent: Any, given: Any, output: Any, ran: Ran) -> Any:
        async for event in agent.stream_async(given, structured_output_model=output):
            ran.streamed += [event["data"]] if "data" in event else []
        return event["result"]


def _pausing(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def asked(tool_context: ToolContext, **arguments: Any) -> Any:
        return function(**arguments) if tool_context.interrupt(function.__name__) else "the user said no"

    plain = inspect.signature(function)
    context = inspect.Parameter("tool_context", inspect.Parameter.KEYWORD_ONLY, annotation=ToolContext)
    asked.__signature__ = plain.replace(parameters=[*plain.parameters.values(), context])  # type: ignore[attr-defined]
    asked.__annotations__ = {**function.__annotations__, "tool_context": ToolContext}
    return tool(context=True)(asked)


class TestStrands(Contract, Pages):
    driver = Strands


# What is the host's own


def test_the_agents_of_a_swarm_have_shares_of_one_budget() -> None:
    ran: list[str] = []
    policy = Policy([Budget(max_calls=9)])
    guard = GuardrailsHooks(policy)
    over = Call("handoff_to_agent", {"agent_name": "two", "message": "go on"})
    more: dict[str, Any] = {"tools": [tool(searching(ran))], "hooks": [guard], "callback_handler": None}
    one = Agent(model_of(in_turn(call_of("x"), over)), name="one", **more)
    two = Agent(model_of(in_turn(call_of("x"))), name="two", **more)
    done = Swarm([one, two], hooks=[guard])("go", invocation_state={"session_id": "t"})
    assert [node.node_id for node in done.node_history] == ["one", "two"]
    assert ran == ["x", "x"]
    assert policy.session("t").ledger.progress == {"calls_used": 3, "calls_left": 6}
