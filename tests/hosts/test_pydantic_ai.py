"""
pydantic-ai's `Agent` behind the guards: the contract, and what is its alone.
"""

import asyncio
import json

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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

from . import page
from .behaviours.base import envelope, in_turn, roaming, search, searching, stuck
from .contract import Contract
from .driver import HELPER, MODEL, Call, Driver, Ran, Say, Script, Way, waited
from .openai_model import OpenAIModel


def returned(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """
    The results of function tools in a conversation, oldest first.
    """
    parts = (part for message in messages for part in message.parts)
    return [
        part for part in parts if isinstance(part, ToolReturnPart) and not part.tool_name.startswith("final_result")
    ]


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


@contextmanager
def looped() -> Iterator[None]:
    """
    A loop for `run_sync`, which leaves one open otherwise.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        loop.close()
        asyncio.set_event_loop(None)


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
        ran.results = [part.model_response_str(wrap_if_error=False) for part in returned(messages)]
        if isinstance(out, DeferredToolRequests):
            ran.paused = [call.tool_name for call in out.approvals]
            return
        ran.unanswered = unanswered(messages)
        ran.output = out if way.output is not None else None
        ran.answer = out if isinstance(out, str) else json.dumps(out.model_dump())


class Forcing(AbstractCapability[Any]):
    """
    A user's way of forcing a tool on every request: pydantic-ai refuses a static choice of this kind.
    """

    def __init__(self, choice: str) -> None:
        self._choice = choice

    def get_model_settings(self) -> Any:
        return lambda ctx: {"tool_choice": [self._choice]}


class TestPydanticAI(Contract):
    driver = PydanticAI


# What is pydantic-ai's own


FIVE = Policy([Budget(max_calls=5)])


def agent(
    script: Script, *tools: Any, guarded: Any = FIVE, also: Sequence[Any] = (), **options: Any
) -> Agent[Any, Any]:
    """
    An agent that *script* drives, behind *guarded*: a policy, a session, or a capability.
    """
    capability = guarded if isinstance(guarded, GuardrailsCapability) else GuardrailsCapability(guarded)
    return Agent(model_of(script), tools=tools, capabilities=[capability, *also], **options)


def told(result: Any) -> list[Any]:
    """
    Of each, what it says.
    """
    return [part.content for part in returned(result.all_messages())]


def run(one: Agent[Any, Any], prompt: str | None = "go", **options: Any) -> Any:
    """
    What *one* comes to, in a loop of its own.
    """
    return asyncio.run(one.run(prompt, **options))


def test_the_last_request_of_the_hosts_limit_is_one_for_an_answer() -> None:
    ran: list[str] = []
    done = run(agent(roaming, searching(ran)), usage_limits=UsageLimits(request_limit=4))
    assert (done.output, done.usage.requests, len(ran)) == ("I know nothing of it.", 4, 3)


def test_a_model_that_calls_with_its_last_request_is_answered_for_by_the_digest() -> None:
    cap, always = GuardrailsCapability(FIVE), lambda asked: Say(calls=(search(f"q{asked.n}"),))
    done = run(agent(always, searching([]), guarded=cap), usage_limits=UsageLimits(request_limit=3))
    assert done.output == cap.session(done.conversation_id).digest()


DEPLOY = ToolDefinition(
    name="deploy", parameters_json_schema={"type": "object", "properties": {"v": {"type": "string"}}}
)


deployed = Say(calls=(Call("deploy", {"v": "1"}, "c1"),))


def deployed_once(asked: Any) -> Say:
    """
    A model that deploys, and is done once it reads of it.
    """
    return Say("Done.") if asked.results else deployed


def test_an_external_tool_is_charged_once_and_its_result_reads_as_an_envelope() -> None:
    cap = GuardrailsCapability(FIVE)
    outside = {"toolsets": [ExternalToolset([DEPLOY])], "output_type": [str, DeferredToolRequests]}
    waits = run(agent(deployed_once, guarded=cap, **outside))
    assert [call.tool_name for call in waits.output.calls] == ["deploy"]
    session = cap.session(waits.conversation_id)
    assert session.ledger.progress["calls_used"] == 1

    results = DeferredToolResults(calls={"c1": {"ok": True}})
    done = run(
        agent(deployed_once, guarded=cap, **outside),
        None,
        message_history=waits.all_messages(),
        deferred_tool_results=results,
    )
    assert envelope(told(done)[0])["result"] == {"ok": True}
    assert session.ledger.progress["calls_used"] == 1
    assert session.ledger.read(lambda state, _: dict(state.pending)) == {}


def test_a_file_stays_a_file_and_a_limit_is_told_beside_it() -> None:
    image = BinaryContent(b"abc", media_type="image/png")
    two = Policy([Budget(max_calls=2)])
    script = in_turn(Say(calls=(Call("look", id="a"),)), Say(calls=(Call("look", id="b"),)))
    done = run(agent(script, Tool(lambda: image, name="look"), guarded=two))
    assert told(done) == [image, image]
    said = [
        part.content for message in done.all_messages() for part in message.parts if isinstance(part, UserPromptPart)
    ]
    assert len(said) == 2
    assert "Tool call limit reached (2)" in str(said[1])


def test_the_program_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    host = Ran()
    with looped():
        page.ran("pydantic-ai", capsys, model=model_of(stuck, host), replaced={'"openai:gpt-5-mini"': "model"})
    assert len(host.asked) == 7
