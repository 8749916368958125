"""
openai-agents with the real client of OpenAI, and the page's program.
"""

import asyncio

from typing import Any

import pytest


pytest.importorskip("agents")

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, SQLiteSession, function_tool
from openai import AsyncOpenAI

from guardrails import Budget, Policy
from guardrails.integrations.openai_agents import GuardedRunner
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call
from tests.hosts.page import programs
from tests.openai_api import problems

from .test_openai_agents import own_loop  # noqa: F401


@pytest.mark.system
def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [(program, printed)] = programs("openai-agents")

    def model(body: Any, n: int) -> Any:
        off = body.get("tool_choice") == "none"
        return Text("I found nothing.") if off else Calls(call("search", {"query": "x"}))

    with ScriptedOpenAI(model) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "-")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        exec(compile(program, "hosts.md", "exec"), {})
        assert problems(server.requests) == []
        assert server.requests[-1]["tools"]
    assert capsys.readouterr().out == printed


@pytest.fixture(params=["responses", "chat"])
def wire(request: pytest.FixtureRequest) -> Any:
    return OpenAIResponsesModel if request.param == "responses" else OpenAIChatCompletionsModel


@pytest.mark.system
@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_calls_on_sends_nothing_that_the_api_refuses(wire: Any, streamed: bool) -> None:
    ran: list[str] = []

    @function_tool
    def search(query: str) -> str:
        """Search the web."""
        ran.append(query)
        return "nothing found"

    async def twice(server: ScriptedOpenAI) -> list[Any]:
        async with AsyncOpenAI(base_url=server.base_url, api_key="-", max_retries=0) as client:
            model = wire(model="gpt-5-mini", openai_client=client)
            agent = Agent(name="main", model=model, tools=[search], model_settings=ModelSettings(include_usage=True))
            runner = GuardedRunner(Policy([Budget(max_calls=2, max_tokens=100_000)]))
            thread, told = SQLiteSession("t"), []
            for _ in range(2):
                if streamed:
                    result: Any = runner.run_streamed(agent, "go", session=thread)
                    async for _event in result.stream_events():
                        pass
                else:
                    result = await runner.run(agent, "go", session=thread)
                told.append(result.final_output)
            assert runner.session("t").ledger.progress["tokens_left"] < 100_000
            thread.close()
            return told

    script = lambda body, n: Calls(call("search", {"query": f"q{n}"}), call("search", {"query": f"r{n}"}))  # noqa: E731
    with ScriptedOpenAI(script) as server:
        told = asyncio.run(twice(server))
        assert problems(server.requests) == []
        assert [body.get("tool_choice") for body in server.requests] == [None, *["none"] * 4]
    assert ran == ["q0", "r0"]
    assert all("2 tool calls were made" in each for each in told)
