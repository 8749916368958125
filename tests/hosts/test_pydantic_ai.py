"""
pydantic-ai's `Agent` behind the guards: the contract, and what is its alone.
"""

import asyncio
import itertools
import json

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any, ClassVar

import pytest


pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, ModelRetry, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel, FunctionStreamedResponse
from pydantic_ai.tools import ToolDefinition, ToolDenied
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.usage import RequestUsage, UsageLimits

from guardrails import Budget, Policy
from guardrails.integrations.pydantic_ai import GuardrailsCapability

from . import page
from .behaviours.base import envelope, in_turn, roaming, search, searching, stuck
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Ran, Say, Script, Way, cancelled


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


class Told(FunctionStreamedResponse):
    """
    A streamed response that says what it used, where that of the host guesses.
    """

    told: RequestUsage | None = None

    def _map_item(self, item: Any) -> Any:
        if isinstance(item, RequestUsage):
            self.told = self._usage = item
            return
        yield from super()._map_item(item)
        self._usage = self.told or self._usage


class Model(FunctionModel):
    """
    A `FunctionModel` whose stream may begin with what it uses.
    """

    @asynccontextmanager
    async def request_stream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        async with super().request_stream(*args, **options) as response:
            response.__class__ = Told
            yield response


class Scripted:
    """
    A `FunctionModel` that answers as *script* says, streamed or not.
    """

    def __init__(self, script: Script, ids: Iterator[int] | None = None) -> None:
        self.asked: list[Asked] = []
        self._script, self._ids = script, itertools.count(1) if ids is None else ids
        self.model = Model(self.whole, stream_function=self.streamed, model_name=MODEL)

    def said(self, messages: list[ModelMessage], info: AgentInfo) -> Say:
        settings: Mapping[str, Any] = info.model_settings or {}
        chosen = settings.get("tool_choice")
        self.asked.append(
            Asked(
                n=len(self.asked),
                tools=tuple(tool.name for tool in info.function_tools),
                choice=chosen[0] if isinstance(chosen, list) else chosen,
                # As a provider with an error flag of its own gets it; others get `{"error": ...}` around a failure.
                results=tuple(part.model_response_str(wrap_if_error=False) for part in returned(messages)),
                schemas={
                    tool.name: {"description": tool.description, "parameters": tool.parameters_json_schema}
                    for tool in info.function_tools
                },
            )
        )
        return self._script(self.asked[-1])

    def calls(self, say: Say, info: AgentInfo) -> list[ToolCallPart]:
        calls = [*say.calls, *([] if say.output is None else [Call(info.output_tools[0].name, say.output)])]
        args = [call.arguments if isinstance(call.arguments, str) else dict(call.arguments) for call in calls]
        return [
            ToolCallPart(call.tool, arg, tool_call_id=call.id or f"call_{next(self._ids)}")
            for call, arg in zip(calls, args, strict=True)
        ]

    def used(self, say: Say) -> RequestUsage:
        if say.usage is None:
            return RequestUsage(unmeasured_requests=1)
        return RequestUsage(input_tokens=say.usage[0], output_tokens=say.usage[1])

    def whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        say = self.said(messages, info)
        text = [TextPart(say.text)] if say.text else []
        return ModelResponse(parts=[*text, *self.calls(say, info)], usage=self.used(say))

    async def streamed(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        say = self.said(messages, info)
        yield self.used(say)
        words = say.text.split(" ") if say.text else []
        for n, word in enumerate(words):
            yield word if n == 0 else f" {word}"
        for n, part in enumerate(self.calls(say, info)):
            yield {n: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}


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


class PydanticAI:
    """
    The driver of `Agent`.
    """

    name = "pydantic_ai"
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._threads: dict[str, list[ModelMessage]] = {}
        self._ids = itertools.count(1)

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsCapability:
        return GuardrailsCapability(guarded, **options)

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        way = Way(**how)
        scripted, behind = Scripted(script, self._ids), [] if adapter is None else [adapter]
        made = [Tool(tool, requires_approval=tool.__name__ in way.pausing) for tool in tools]
        if way.helper is not None:
            inner = Agent(Scripted(way.helper.script, self._ids).model, tools=way.helper.tools, capabilities=behind)

            async def ask(task: str) -> str:
                """Let a way.helper work on a task."""
                return (await inner.run(task)).output

            made.append(Tool(ask, name=HELPER))
        if way.choice is not None:
            behind = [*behind, Forcing(way.choice)]
        kinds: Any = [way.output or str, DeferredToolRequests] if way.pausing else way.output or str
        agent = Agent(scripted.model, tools=made, capabilities=behind, output_type=kinds)
        history = self._threads.get(way.thread or "", [])
        given: dict[str, Any] = {"message_history": history, "conversation_id": way.thread}
        if way.resume:
            prompt_: str | None = None
            given["deferred_tool_results"] = DeferredToolResults(approvals=dict.fromkeys(unanswered(history), True))
        else:
            prompt_ = way.prompt
        ran = Ran(asked=scripted.asked)

        async def streamed() -> Any:
            async with agent.run_stream(prompt_, **given) as result:
                ran.streamed = (
                    [text async for text in result.stream_text(delta=True, debounce_by=None)]
                    if way.output is None
                    else []
                )
                out = await result.get_output()
                return result, out

        try:
            if way.stream:
                result, out = asyncio.run(streamed())
            elif way.cancel is not None:
                result = asyncio.run(cancelled(agent.run(prompt_, **given), way.cancel))
                out = result.output
            else:
                with looped() if way.sync else nullcontext():
                    result = agent.run_sync(prompt_, **given) if way.sync else run(agent, prompt_, **given)
                out = result.output
        except BaseException as error:
            ran.error = error
            return ran
        messages = result.all_messages()
        self._threads[way.thread or ""] = messages if way.thread else []
        ran.results = [part.model_response_str(wrap_if_error=False) for part in returned(messages)]
        if isinstance(out, DeferredToolRequests):
            ran.paused = [call.tool_name for call in out.approvals]
            return ran
        ran.unanswered = unanswered(messages)
        ran.output = out if way.output is not None else None
        ran.answer = out if isinstance(out, str) else json.dumps(out.model_dump())
        return ran


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
    return Agent(Scripted(script).model, tools=tools, capabilities=[capability, *also], **options)


def outcomes(result: Any) -> list[str]:
    """
    Of each result of a tool, what the host says it is.
    """
    return [part.outcome for part in returned(result.all_messages())]


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


def test_a_call_that_a_person_denies_is_not_counted() -> None:
    cap = GuardrailsCapability(FIVE)
    ran: list[str] = []

    def deploy(v: str) -> str:
        ran.append(v)
        return "deployed"

    one = agent(
        deployed_once, Tool(deploy, requires_approval=True), guarded=cap, output_type=[str, DeferredToolRequests]
    )
    waits = run(one)
    denied = DeferredToolResults(approvals={"c1": ToolDenied("not today")})
    done = run(one, None, message_history=waits.all_messages(), deferred_tool_results=denied)
    assert (told(done), done.output, ran) == (["not today"], "Done.", [])
    assert cap.session(waits.conversation_id).ledger.progress["calls_used"] == 0


def test_a_retry_that_a_tool_asks_for_stays_one_and_more_of_them_end_no_run() -> None:
    def find(query: str) -> str:
        raise ModelRetry("use two words")

    calls = [Say(calls=(Call("find", {"query": f"q{n}"}),)) for n in range(4)]
    done = run(agent(in_turn(*calls), find, guarded=Policy.load("default")))
    assert outcomes(done) == ["retried", "failed", "failed", "failed"]
    assert [envelope(text)["error_message"] for text in told(done)] == ["use two words"] * 4
    assert envelope(told(done)[0])["next_action"] == "fix_arguments"
    assert done.output == "Done."


@pytest.mark.parametrize("kind", [ModelRetry, ToolFailed])
def test_what_a_validator_of_arguments_says_is_wrong_with_them(kind: Any) -> None:
    ran: list[str] = []

    def odd(ctx: Any, query: str) -> None:
        if query == "x":
            raise kind("one letter finds nothing")

    tool = Tool(searching(ran), args_validator=odd)
    calls = [Say(calls=(search("x"),)), Say(calls=(search("x"),)), Say(calls=(search("words"),))]
    done = run(agent(in_turn(*calls), tool, guarded=Policy.load("default")))
    assert outcomes(done) == ["failed", "failed", "success"]
    assert envelope(told(done)[0])["errors"] == [{"field": "", "message": "one letter finds nothing"}]
    assert ran == ["words"]


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
    scripted = Scripted(stuck)
    with looped():
        page.ran("pydantic-ai", capsys, model=scripted.model, replaced={'"openai:gpt-5-mini"': "model"})
    assert len(scripted.asked) == 7
