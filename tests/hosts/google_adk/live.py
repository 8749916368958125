"""
A live run: its calls are guarded by callbacks.
"""

import asyncio
import json

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.hosts.behaviours.base import searching


class Line(BaseLlmConnection):
    """
    A connection whose model makes the same call four times, and then says that it is done.
    """

    def __init__(self) -> None:
        self.results: list[Any] = []
        self._answered: asyncio.Queue[Any] = asyncio.Queue()

    async def send_history(self, history: Any) -> None:
        pass

    async def send_content(self, content: types.Content) -> None:
        for part in content.parts or []:
            if part.function_response is not None:
                self.results.append(part.function_response.response)
                await self._answered.put(None)

    async def send_realtime(self, blob: Any) -> None:
        pass

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        for n in range(4):
            call = types.FunctionCall(id=f"c-{n}", name="search", args={"query": "x"})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
            await self._answered.get()
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Done.")]), turn_complete=True)
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


class Speaking(BaseLlm):
    model: str = "live-1"
    line: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
        raise AssertionError("a live run asks nothing")
        yield

    @asynccontextmanager
    async def connect(self, llm_request: Any) -> AsyncGenerator[Any, None]:
        yield self.line


class Live:
    @pytest.mark.filterwarnings("ignore::UserWarning:google.adk")
    def test_the_calls_of_a_live_run_are_guarded(self) -> None:
        ran: list[str] = []
        policy = Policy([Duplicates(), Budget(max_calls=9)])

        async def go() -> list[Any]:
            line = Line()
            agent = LlmAgent(name="agent", model=Speaking(line=line), tools=[searching(ran)])
            service = InMemorySessionService()
            await service.create_session(app_name="app", user_id="user", session_id="t")
            app = App(name="app", root_agent=agent, plugins=[GuardrailsPlugin(policy)])
            queue = LiveRequestQueue()
            queue.send_content(types.Content(role="user", parts=[types.Part(text="go")]))
            async for event in Runner(app=app, session_service=service).run_live(
                user_id="user", session_id="t", live_request_queue=queue
            ):
                if event.turn_complete:
                    queue.close()
                    break
            return line.results

        results = asyncio.run(go())
        assert ran == ["x"]
        assert [one["status"] for one in results] == ["success", *["duplicate_call_blocked"] * 3], json.dumps(results)
        assert policy.session("t").ledger.progress["calls_used"] == 1
