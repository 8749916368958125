"""
pydantic-ai's `Agent` behind the guards: the contract, and what is its alone.
"""

import asyncio

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest


pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.usage import UsageLimits

from guardrails import Budget, Policy
from guardrails.integrations.pydantic_ai import GuardrailsCapability

from .behaviours import Contract, Pages, envelope, in_turn, restless, roaming, searching
from .driver import HELPER, MODEL, Asked, Call, Driver, Ran, Say, Script, Way, looped, waited
from .openai_model import OpenAIModel


def returned(result: Any) -> list[Any]:
    """
    The results of tools in a conversation, oldest first.
    """
    parts = (part for message in result.all_messages() for part in message.parts)
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


def unanswered(messages: Sequence[ModelMessage]) -> list[str]:
    """
    Ids of the calls in a conversation that have no result.
    """
    made = [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
    done = {getattr(part, "tool_call_id", None) for message in messages for part in message.parts if part not in made}
    return [part.tool_call_id for part in made if part.tool_call_id not in done]


def model_of(script: Script, ran: Ran | None = None) -> OpenAIChatModel:
    scripted = OpenAIModel(script, ran, ("final_result",))
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=scripted.client))


class PydanticAI(Driver):
    """
    The driver of `Agent`.
    """

    name = "pydantic_ai"
    kind = GuardrailsCapability

    def __init__(self) -> None:
        self._threads: dict[str, list[ModelMessage]] = {}

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        behind = [] if adapter is None else [adapter]
        made = [Tool(tool, requires_approval=tool.__name__ in way.pausing) for tool in tools]
        if way.helper is not None:
            inner = Agent(model_of(way.helper.script), tools=way.helper.tools, capabilities=behind)

            async def ask(task: str) -> str:
                """Let a way.helper work on a task."""
                return (await inner.run(task)).output

            made.append(Tool(ask, name=HELPER))
        if way.choice is not None:
            behind = [*behind, Forcing(way.choice)]
        kinds: Any = [way.output or str, DeferredToolRequests] if way.pausing else way.output or str
        agent = Agent(model_of(script, ran), tools=made, capabilities=behind, output_type=kinds)
        history = self._threads.get(way.thread or "", [])
        given: dict[str, Any] = {"message_history": history, "conversation_id": way.thread}
        if way.resume:
            given["deferred_tool_results"] = DeferredToolResults(approvals=dict.fromkeys(unanswered(history), True))
        else:
            given["user_prompt"] = way.prompt

        async def streamed() -> Any:
            async with agent.run_stream(**given) as result:
                if way.output is None:
                    ran.streamed = [text async for text in result.stream_text(delta=True, debounce_by=None)]
                return result, await result.get_output()

        if way.stream:
            result, out = asyncio.run(streamed())
        else:
            with looped() if way.sync else nullcontext():
                result = agent.run_sync(**given) if way.sync else waited(agent.run(**given), way)
            out = result.output
        messages = result.all_messages()
        self._threads[way.thread or ""] = messages if way.thread else []
        if isinstance(out, DeferredToolRequests):
            ran.paused = [call.tool_name for call in out.approvals]
        elif way.output is None:
            ran.answer = out
        else:
            ran.output = out


class Forcing(AbstractCapability[Any]):
    """
    A user's way of forcing a tool on every request: pydantic-ai refuses a static choice of this kind.
    """

    def __init__(self, choice: str) -> None:
        self._choice = choice

    def get_model_settings(self) -> Any:
        return lambda ctx: {"tool_choice": [self._choice]}


class TestPydanticAI(Contract, Pages):
    driver = PydanticAI


# What is pydantic-ai's own


FIVE = Policy([Budget(max_calls=5)])


def run(script: Script, tools: Sequence[Any], guarded: Policy = FIVE, given: Any = None, **options: Any) -> Any:
    """
    What an agent that *script* drives comes to, and the session of its conversation.
    """
    guard = GuardrailsCapability(guarded)
    agent = Agent(model_of(script), tools=tools, capabilities=[guard], **options)
    done = asyncio.run(agent.run(**({"user_prompt": "go"} | (given or {}))))
    return done, guard.session(done.conversation_id)


def test_the_last_request_of_the_hosts_limit_is_one_for_an_answer() -> None:
    ran: list[str] = []
    done, _ = run(roaming, [searching(ran)], given={"usage_limits": UsageLimits(request_limit=4)})
    assert (done.output, done.usage.requests, len(ran)) == ("I know nothing of it.", 4, 3)


def test_a_model_that_calls_with_its_last_request_is_answered_for_by_the_digest() -> None:
    done, session = run(restless, [searching([])], given={"usage_limits": UsageLimits(request_limit=3)})
    assert done.output == session.digest()


def test_an_external_tool_is_charged_once_and_its_result_reads_as_an_envelope() -> None:
    deploy = ToolDefinition(name="deploy", parameters_json_schema={"type": "object", "properties": {}})
    outside: Any = {"toolsets": [ExternalToolset([deploy])], "output_type": [str, DeferredToolRequests]}

    def script(asked: Asked) -> Say:
        return Say("Done.") if asked.results else Say(calls=(Call("deploy", id="c1"),))

    waits, session = run(script, [], **outside)
    assert [call.tool_name for call in waits.output.calls] == ["deploy"]
    assert session.ledger.progress["calls_used"] == 1

    results = DeferredToolResults(calls={"c1": {"ok": True}})
    given = {"user_prompt": None, "message_history": waits.all_messages(), "deferred_tool_results": results}
    done, session = run(script, [], given=given, **outside)
    assert envelope(returned(done)[0])["result"] == {"ok": True}
    assert session.ledger.progress["calls_used"] == 1
    assert session.ledger.read(lambda state, _: dict(state.pending)) == {}


def test_a_file_stays_a_file_and_a_limit_is_told_beside_it() -> None:
    image, look = BinaryContent(b"abc", media_type="image/png"), Call("look")
    done, _ = run(in_turn(look, look), [Tool(lambda: image, name="look")], Policy([Budget(max_calls=2)]))
    assert returned(done) == [image, image]
    parts = [part for message in done.all_messages() for part in message.parts]
    [_, beside] = [part.content for part in parts if isinstance(part, UserPromptPart)]
    assert "Tool call limit reached (2)" in str(beside)
