"""
Microsoft agent-framework's `Agent` behind the guards: the contract, and what is its alone.
"""

import asyncio
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
    FunctionTool,
    Message,
    tool,
)

from guardrails.integrations.agent_framework import GuardrailsMiddleware

from .contract import Contract
from .driver import HELPER, MODEL, Asked, Helper, Ran, Say, Script, cancelled


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
        assert not more, more
        if stream:
            return self._build_response_stream(self._words(messages, options), response_format=options.get("response_format"))
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
        resume: bool = False,
        cancel: Any = None,
    ) -> Ran:
        client, behind = Scripted(script, self.ids), [] if adapter is None else [adapter]
        made = [
            tool(one, approval_mode="always_require" if one.__name__ in pausing else "never_require") for one in tools
        ]
        if helper is not None:
            inner = Agent(Scripted(helper.script, self.ids), name=HELPER, tools=list(helper.tools), middleware=behind)
            made.append(inner.as_tool(arg_name="task"))
        agent = Agent(client, tools=made, middleware=behind)
        session, before = (None, []) if thread is None else self.threads.setdefault(
            thread, (AgentSession(session_id=thread), [])
        )
        options: dict[str, Any] = {}
        if choice is not None:
            options["tool_choice"] = {"mode": "required", "required_function_name": choice}
        if output is not None:
            options["response_format"] = output
        waits = [one for one in contents(before, "function_approval_request")] if resume else []
        given: Any = prompt
        if resume:
            given = [Message("user", [one.to_function_approval_response(approved=True) for one in waits])]
        ran = Ran(asked=client.asked)

        async def work() -> Any:
            if not stream:
                return await agent.run(given, session=session, options=options)
            updates = agent.run(given, session=session, options=options, stream=True)
            async for update in updates:
                if update.text:
                    ran.streamed.append(update.text)
            return await updates.get_final_response()

        try:
            done = asyncio.run(work() if cancel is None else cancelled(work(), cancel))
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
        ran.output = done.value if output is not None else None
        return ran


class TestAgentFramework(Contract):
    driver = Driver
