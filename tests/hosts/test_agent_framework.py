"""
Microsoft agent-framework's `Agent` behind the guards: the contract, and what is its alone.
"""

import asyncio

from collections.abc import Callable, Sequence
from typing import Any

import pytest


pytest.importorskip("agent_framework.openai")

from agent_framework import Agent, AgentSession, Content, Message, tool
from agent_framework.openai import OpenAIChatCompletionClient

from guardrails import Budget, Policy
from guardrails.integrations.agent_framework import GuardrailsMiddleware

from .behaviours import Contract, Pages, in_turn, restless, searching
from .driver import HELPER, MODEL, Call, Driver, Ran, Script, Way, waited
from .openai_model import OpenAIModel


pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:agent_framework")


def client_of(script: Script, ran: Ran | None = None, **options: Any) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model=MODEL, async_client=OpenAIModel(script, ran).client, **options)


def contents(messages: Sequence[Message], kind: str) -> list[Content]:
    return [one for message in messages for one in message.contents if one.type == kind]


class AgentFramework(Driver):
    """
    `Agent` over a chat client.
    """

    name = "agent_framework"
    kind = GuardrailsMiddleware

    def __init__(self) -> None:
        self.threads: dict[str, tuple[AgentSession, list[Message]]] = {}

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        behind, modes = [] if adapter is None else [adapter], ("never_require", "always_require")
        made = [tool(one, approval_mode=modes[one.__name__ in way.pausing]) for one in tools]
        if way.helper is not None:
            about: Any = {"name": HELPER, "tools": list(way.helper.tools), "middleware": behind}
            made.append(Agent(client_of(way.helper.script), **about).as_tool(arg_name="task"))
        agent = Agent(client_of(script, ran), tools=made, middleware=behind)
        session, before = None, list[Message]()
        if way.thread is not None:
            opened = AgentSession(session_id=way.thread), before
            session, before = self.threads.setdefault(way.thread, opened)
        options: dict[str, Any] = {}
        if way.choice is not None:
            options["tool_choice"] = {"mode": "required", "required_function_name": way.choice}
        if way.output is not None:
            options["response_format"] = way.output
        given: Any = way.prompt
        if way.resume:
            waits = contents(before, "function_approval_request")
            given = [Message("user", [one.to_function_approval_response(approved=True) for one in waits])]

        async def work() -> Any:
            if not way.stream:
                return await agent.run(given, session=session, options=options)
            updates = agent.run(given, session=session, options=options, stream=True)
            ran.streamed = [update.text async for update in updates if update.text]
            return await updates.get_final_response()

        done = waited(work(), way)
        before += done.messages
        ran.paused = [one.function_call.name for one in done.user_input_requests]
        ran.answer = done.messages[-1].text
        ran.output = None if way.output is None else done.value


class TestAgentFramework(Contract, Pages):
    driver = AgentFramework


# What is agent-framework's own


def agent_of(script: Script, tool: Any, guard: Any, ran: Ran | None = None, **client: Any) -> Any:
    return Agent(client_of(script, ran, **client), tools=[tool], middleware=[guard])


@pytest.mark.parametrize("limit", [{"max_iterations": 2}, {"max_function_calls": 2}])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_of_the_host_holds_and_ends_with_the_digest_where_the_model_gives_no_answer(
    limit: Any, streamed: bool
) -> None:
    ran, host = list[str](), Ran()
    guard, thread = GuardrailsMiddleware(Policy([Budget(max_calls=5)])), AgentSession()
    agent = agent_of(restless, searching(ran), guard, host, function_invocation_configuration=limit)

    async def work() -> Any:
        if not streamed:
            return await agent.run("go", session=thread)
        return await agent.run("go", session=thread, stream=True).get_final_response()

    done = asyncio.run(work())
    assert ran == ["q0", "q1"]
    assert [one.off for one in host.asked] == [False, False, True, True]
    assert done.messages[-1].text == guard.session(thread).digest()
    assert len(contents(done.messages, "function_call")) == 2


def test_a_file_stays_a_file_and_a_limit_is_told_beside_it() -> None:
    image, look = Content.from_data(data=b"abc", media_type="image/png"), Call("look")

    def see() -> Any:
        """Look."""
        return image

    agent = agent_of(in_turn(look, look), tool(see, name="look"), GuardrailsMiddleware(Policy([Budget(max_calls=2)])))
    first, second = contents(asyncio.run(agent.run("go")).messages, "function_result")
    assert [one.type for one in first.items] == ["data"]
    assert [one.type for one in second.items] == ["data", "text"]
    assert "limit" in second.items[1].text
