"""
Microsoft agent-framework's `Agent` behind the guards: the contract, and what is its alone.
"""

import asyncio
import gc
import itertools
import json

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest


pytest.importorskip("agent_framework")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    MiddlewareTermination,
    tool,
)

from guardrails import Budget, Policy
from guardrails.integrations.agent_framework import GuardrailsMiddleware

from . import page
from .behaviours.base import in_turn, search, searching
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Ran, Say, Script, Way, cancelled
from .page import openai_model


pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:agent_framework")


class Scripted(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """
    Says what a script says.
    """

    def __init__(self, script: Script, ids: Any = None, **more: Any) -> None:
        super().__init__(**more)
        self.script = script
        self.asked: list[Asked] = []
        self.sent: list[Sequence[Message]] = []
        self.ids = ids or itertools.count(1)

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        assert more.keys() <= {"conversation_id"}, more
        if stream:
            return self._build_response_stream(
                self._words(messages, options), response_format=options.get("response_format")
            )
        return self._whole(messages, options)

    async def _whole(self, messages: Any, options: Any) -> ChatResponse:
        say, calls = self._said(messages, options)
        contents = [Content.from_text(say.text)] if say.text else []
        return ChatResponse(
            messages=[Message("assistant", [*contents, *calls])],
            response_id=f"r{next(self.ids)}",
            model=MODEL,
            usage_details=used(say),
            response_format=options.get("response_format"),
        )

    async def _words(self, messages: Any, options: Any) -> AsyncIterator[ChatResponseUpdate]:
        say, calls = self._said(messages, options)
        known: Any = {"role": "assistant", "response_id": f"r{next(self.ids)}", "model": MODEL}
        for n, word in enumerate(say.text.split(" ") if say.text else []):
            yield ChatResponseUpdate(contents=[Content.from_text(word if n == 0 else f" {word}")], **known)
        yield ChatResponseUpdate(contents=calls, **known)
        details = used(say)
        if details is not None:
            yield ChatResponseUpdate(contents=[Content.from_usage(details)], **known)

    def _said(self, messages: Sequence[Message], options: Any) -> tuple[Say, list[Content]]:
        tools, choice = options.get("tools") or (), options.get("tool_choice")
        mode = choice.get("mode") if isinstance(choice, Mapping) else choice
        forced = choice.get("required_function_name") if isinstance(choice, Mapping) else None
        asked = Asked(
            n=len(self.asked),
            tools=tuple(one.name for one in tools),
            choice=forced or mode,
            results=tuple(results(messages)),
            schemas={one.name: one.to_json_schema_spec() for one in tools},
        )
        self.asked.append(asked)
        self.sent.append(list(messages))
        say = self.script(asked)
        if say.output is not None:
            say = Say(json.dumps(say.output), say.calls, say.usage)
        return say, [
            Content.from_function_call(
                call_id=call.id or f"c{next(self.ids)}",
                name=call.tool,
                arguments=call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments)),
            )
            for call in say.calls
        ]


def used(say: Say) -> Any:
    if say.usage is None:
        return None
    into, out = say.usage
    return {"input_token_count": into, "output_token_count": out, "total_token_count": into + out}


def contents(messages: Sequence[Message], kind: str) -> list[Content]:
    return [one for message in messages for one in message.contents if one.type == kind]


def results(messages: Sequence[Message]) -> list[str]:
    return [str(one.result) for one in contents(messages, "function_result")]


class Driver:
    """
    `Agent` over a chat client of the test.
    """

    name = "agent_framework"
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self.threads: dict[str, tuple[AgentSession, list[Message]]] = {}
        self.ids = itertools.count(1)

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsMiddleware:
        return GuardrailsMiddleware(guarded, **options)

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        way = Way(**how)
        client, behind = Scripted(script, self.ids), [] if adapter is None else [adapter]
        made = [
            tool(one, approval_mode="always_require" if one.__name__ in way.pausing else "never_require")
            for one in tools
        ]
        if way.helper is not None:
            inner = Agent(
                Scripted(way.helper.script, self.ids), name=HELPER, tools=list(way.helper.tools), middleware=behind
            )
            made.append(inner.as_tool(arg_name="task"))
        agent = Agent(client, tools=made, middleware=behind)
        session, before = (
            (None, [])
            if way.thread is None
            else self.threads.setdefault(way.thread, (AgentSession(session_id=way.thread), []))
        )
        options: dict[str, Any] = {}
        if way.choice is not None:
            options["tool_choice"] = {"mode": "required", "required_function_name": way.choice}
        if way.output is not None:
            options["response_format"] = way.output
        waits = contents(before, "function_approval_request") if way.resume else []
        given: Any = way.prompt
        if way.resume:
            given = [Message("user", [one.to_function_approval_response(approved=True) for one in waits])]
        ran = Ran(asked=client.asked)

        async def work() -> Any:
            if not way.stream:
                return await agent.run(given, session=session, options=options)
            updates = agent.run(given, session=session, options=options, stream=True)
            async for update in updates:
                if update.text:
                    ran.streamed.append(update.text)
            return await updates.get_final_response()

        try:
            done = asyncio.run(work() if way.cancel is None else cancelled(work(), way.cancel))
        except BaseException as error:
            ran.error = error
            return ran
        before += done.messages
        ran.results = results(before)
        ran.paused = [one.function_call.name for one in done.user_input_requests]
        if ran.paused:
            return ran
        answered = {one.call_id for one in contents(before, "function_result")}
        ran.unanswered = [one.call_id for one in contents(before, "function_call") if one.call_id not in answered]
        ran.answer = done.messages[-1].text
        ran.output = done.value if way.output is not None else None
        return ran


class TestAgentFramework(Contract):
    driver = Driver


# What is agent-framework's own


FIVE = Policy([Budget(max_calls=5)])


def agent_of(script: Script, *tools: Any, guard: Any = None, client: Any = None, **more: Any) -> Any:
    before, after = more.pop("before", ()), more.pop("after", ())
    guard = GuardrailsMiddleware(FIVE) if guard is None else guard
    made = Scripted(script, **(client or {}))
    return Agent(made, tools=list(tools), middleware=[*before, guard, *after], **more)


def ask(agent: Any, given: Any = "go", **more: Any) -> Any:
    return asyncio.run(agent.run(given, **more))


async def stream(agent: Any, **more: Any) -> tuple[str, Any]:
    updates = agent.run("go", stream=True, **more)
    said = [update.text async for update in updates]
    return "".join(said), await updates.get_final_response()


def unsettled(session: Any) -> dict[str, Any]:
    return dict(
        session.ledger.read(lambda state, _: {**state.pending, **(state.own.get("budget") or {}).get("holds", {})})
    )


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The program of a reader leaves its connection to the loop that ended.
    """
    pytest.importorskip("agent_framework.openai")
    with openai_model(monkeypatch, "I know nothing of it."):
        page.ran("Microsoft agent-framework", capsys)
        gc.collect()


# The end


@pytest.mark.parametrize("limit", [{"max_iterations": 2}, {"max_function_calls": 2}])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_of_the_host_holds_and_ends_with_the_digest_where_the_model_gives_no_answer(
    limit: Any, streamed: bool
) -> None:
    ran: list[str] = []
    guard, thread = GuardrailsMiddleware(FIVE), AgentSession()
    script = lambda asked: Say(calls=(search(f"q{asked.n}"),))  # noqa: E731
    agent = agent_of(script, searching(ran), guard=guard, client={"function_invocation_configuration": limit})
    done = asyncio.run(stream(agent, session=thread))[1] if streamed else ask(agent, session=thread)
    assert ran == ["q0", "q1"]
    assert [one.off for one in agent.client.asked] == [False, False, True, True]
    assert done.messages[-1].text == guard.session(thread).digest()
    assert len(contents(done.messages, "function_call")) == 2


# Tools


def test_a_file_stays_a_file_and_a_limit_is_told_beside_it() -> None:
    image = Content.from_data(data=b"abc", media_type="image/png")

    def look() -> Any:
        """Look."""
        return image

    done = ask(
        agent_of(
            in_turn(Say(calls=(Call("look"),)), Say(calls=(Call("look"),))),
            look,
            guard=GuardrailsMiddleware(Policy([Budget(max_calls=2)])),
        )
    )
    first, second = contents(done.messages, "function_result")
    assert [one.type for one in first.items] == ["data"]
    assert [one.type for one in second.items] == ["data", "text"]
    assert "limit" in second.items[1].text


# Control flow


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_that_ends_the_run_ends_it_and_is_settled(streamed: bool) -> None:
    def search(query: str) -> str:
        """Search the web for a query."""
        raise MiddlewareTermination(result="found")

    guard, thread = GuardrailsMiddleware(FIVE), AgentSession()
    agent = agent_of(in_turn(Say(calls=(Call("search", {"query": "x"}),))), search, guard=guard)
    done = asyncio.run(stream(agent, session=thread))[1] if streamed else ask(agent, session=thread)
    assert results(done.messages) == ["found"]
    assert len(agent.client.asked) == 1
    session = guard.session(thread)
    assert (session.ledger.progress["calls_used"], unsettled(session)) == (1, {})
