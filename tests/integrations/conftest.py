"""
The ways to drive an agent loop: each wire, sync and async, streamed or not.
"""

import asyncio
import json

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

from guardrails import Policy, Registry, Session
from guardrails.integrations.openai import arun, run
from guardrails.integrations.openai.loop import LoopResult
from guardrails.testing.scripted_openai import Reply, Script, ScriptedOpenAI, call
from tests.openai_api import CHAT, RESPONSES, problems


class Search:
    """
    The tool `search`, which finds the same everywhere, and where it looked.
    """

    def __init__(self, result: str | None = None) -> None:
        self.ran: list[str] = []
        self.result = result
        self.tools = Registry([self.search])

    def search(self, path: str) -> str:
        """
        Search a file.
        """
        self.ran.append(path)
        return self.result or f"nothing in {path}"


def search(path: str, id_: str | None = None) -> Any:
    return call("search", {"path": path}, id=id_)


def user(text: str = "go") -> dict[str, Any]:
    return {"role": "user", "content": text}


def results(messages: list[Any]) -> list[tuple[str, str]]:
    """
    The results in a conversation of either wire: the id of the call, and the text.
    """
    chat = [(one["tool_call_id"], one["content"]) for one in messages if one.get("role") == "tool"]
    return chat + [(one["call_id"], one["output"]) for one in messages if one.get("type") == "function_call_output"]


def answered(messages: list[Any]) -> list[str]:
    return [key for key, _ in results(messages)]


def envelopes(messages: list[Any]) -> list[Any]:
    return [json.loads(text) for _, text in results(messages)]


def calls(messages: list[Any]) -> list[str]:
    """
    The ids of the calls in a conversation.
    """
    chat = [made["id"] for one in messages for made in one.get("tool_calls", ())]
    return chat + [one["call_id"] for one in messages if one.get("type") == "function_call"]


class Way:
    """
    One way to drive the loop, and how its requests are read.
    """

    def __init__(self, wire: Any, *, asynchronous: bool, stream: bool) -> None:
        self.wire, self.asynchronous, self.stream = wire, asynchronous, stream
        self.api: Any = CHAT if wire == "chat" else RESPONSES

    def __call__(
        self, server: ScriptedOpenAI, session: Session | None = None, *, retries: int = 0, **options: Any
    ) -> LoopResult:
        session = session or Policy().session("s")
        options = {"model": "m", "wire": self.wire, "stream": self.stream, "messages": [user()], **options}
        about: dict[str, Any] = {"base_url": server.base_url, "api_key": "-", "max_retries": retries}

        async def looped() -> LoopResult:
            async with AsyncOpenAI(**about, http_client=DefaultAsyncHttpxClient(verify=False)) as client:
                return await arun(client, session, **options)

        if self.asynchronous:
            return asyncio.run(looped())
        with OpenAI(**about, http_client=DefaultHttpxClient(verify=False)) as client:
            return run(client, session, **options)

    @property
    def chat(self) -> bool:
        return bool(self.wire == "chat")

    def address(self, server: ScriptedOpenAI) -> str:
        return f"{server.base_url}/{'chat/completions' if self.chat else 'responses'}"

    def sent(self, body: Any) -> list[Any]:
        """
        The messages, or items, of a request.
        """
        return list(body["messages"] if self.chat else body["input"])

    def __str__(self) -> str:
        return f"{self.wire} {'async' if self.asynchronous else 'sync'}{' streamed' if self.stream else ''}"


WAYS = [
    Way(wire, asynchronous=a, stream=s) for wire in ("chat", "responses") for a in (False, True) for s in (False, True)
]


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
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
