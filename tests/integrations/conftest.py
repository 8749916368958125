"""
The ways to drive an agent loop: each wire, sync and async, streamed or not.
"""

import asyncio
import json

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

from guardrails import Session
from guardrails.integrations.openai import arun, run
from guardrails.integrations.openai.loop import LoopResult
from guardrails.testing.scripted_openai import Reply, Script, ScriptedOpenAI
from tests.openai_api import problems


class Way:
    """
    One way to drive the loop, and how what it leaves behind is read.
    """

    def __init__(self, wire: Any, *, asynchronous: bool, stream: bool) -> None:
        self.wire = wire
        self.asynchronous = asynchronous
        self.stream = stream

    def __call__(self, server: ScriptedOpenAI, session: Session, *, retries: int = 0, **options: Any) -> LoopResult:
        options = {"model": "m", "wire": self.wire, "stream": self.stream, "messages": [self.user()], **options}
        if self.asynchronous:
            return asyncio.run(self._asynchronously(server, session, retries, options))
        http = DefaultHttpxClient(verify=False)
        with OpenAI(base_url=server.base_url, api_key="-", max_retries=retries, http_client=http) as client:
            return run(client, session, **options)

    async def _asynchronously(
        self, server: ScriptedOpenAI, session: Session, retries: int, options: dict[str, Any]
    ) -> LoopResult:
        http = DefaultAsyncHttpxClient(verify=False)
        async with AsyncOpenAI(base_url=server.base_url, api_key="-", max_retries=retries, http_client=http) as client:
            return await arun(client, session, **options)

    @property
    def chat(self) -> bool:
        return bool(self.wire == "chat")

    @staticmethod
    def user(text: str = "go") -> dict[str, Any]:
        return {"role": "user", "content": text}

    def sent(self, body: Any) -> list[Any]:
        """
        The messages, or items, of a request.
        """
        return list(body["messages"] if self.chat else body["input"])

    def outputs(self, messages: list[Any]) -> list[str]:
        """
        The text of each result in a conversation.
        """
        if self.chat:
            return [m["content"] for m in messages if m["role"] == "tool"]
        return [m["output"] for m in messages if m.get("type") == "function_call_output"]

    def results(self, messages: list[Any]) -> list[Any]:
        return [json.loads(output) for output in self.outputs(messages)]

    def ids(self, messages: list[Any]) -> tuple[list[Any], list[Any]]:
        """
        The ids of the calls in a conversation, and those of the results.
        """
        if self.chat:
            made = [call["id"] for m in messages for call in m.get("tool_calls", ())]
            return made, [m["tool_call_id"] for m in messages if m["role"] == "tool"]
        made = [m["call_id"] for m in messages if m.get("type") == "function_call"]
        return made, [m["call_id"] for m in messages if m.get("type") == "function_call_output"]

    def listed(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """
        A tool as the wire lists it.
        """
        said = {"name": name, "description": "", "parameters": schema}
        return {"type": "function", "function": said} if self.chat else {"type": "function", **said, "strict": False}

    def named(self, name: str) -> dict[str, Any]:
        """
        The tool choice that forces a function.
        """
        return {"type": "function", "function": {"name": name}} if self.chat else {"type": "function", "name": name}

    def __str__(self) -> str:
        return f"{self.wire} {'async' if self.asynchronous else 'sync'}{' streamed' if self.stream else ''}"


WAYS = [
    Way(wire, asynchronous=a, stream=s) for wire in ("chat", "responses") for a in (False, True) for s in (False, True)
]


@pytest.fixture
def all_ways() -> list[Way]:
    return WAYS


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    given: Way = request.param
    return given


@pytest.fixture(params=[WAYS[0], WAYS[4], WAYS[7]], ids=str)
def some(request: pytest.FixtureRequest) -> Way:
    """
    For what has little to do with the wire.
    """
    given: Way = request.param
    return given


@pytest.fixture
def serve() -> Iterator[Callable[..., ScriptedOpenAI]]:
    """
    Starts servers, and at the end checks that the API would have taken every request.
    """
    servers: list[ScriptedOpenAI] = []

    def start(script: Script | Sequence[Reply]) -> ScriptedOpenAI:
        servers.append(ScriptedOpenAI(script).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)
    assert [problems(server.requests) for server in servers] == [[] for _ in servers]
