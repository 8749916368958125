"""
The scripted model behind the client of OpenAI, for hosts that have that client. No socket is opened.
"""

import json

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx
import pytest

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient

from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, Usage, call
from tests.openai_api import problems

from .driver import Asked, Call, Ran, Script


URL = "http://127.0.0.1/v1"


class OpenAIModel:
    """
    Answers chat.completions as *script* says; *outputs* names the host's own tools for structured output. An exception of
    the script is one of the client's.
    """

    def __init__(self, script: Script, ran: Ran | None = None, outputs: Sequence[str] = ()) -> None:
        self._script, self._ran, self._outputs = script, Ran() if ran is None else ran, outputs
        self._error: Exception | None = None
        self._server = ScriptedOpenAI(self._reply)
        self._ran.sent = self._server.requests
        transport = httpx.MockTransport(self._handle)
        self.http, self.ahttp = DefaultHttpxClient(transport=transport), DefaultAsyncHttpxClient(transport=transport)

    @property
    def client(self) -> AsyncOpenAI:
        """
        A client that asks it.
        """
        return AsyncOpenAI(base_url=URL, api_key="-", max_retries=0, http_client=self.ahttp)

    def _handle(self, request: Any) -> Any:
        answer = self._server.answer(request.url.path, request.read())
        if self._error is not None:
            raise self._error
        return httpx.Response(answer.status, headers={"Content-Type": answer.content_type}, content=answer.data)

    def _reply(self, body: Any, n: int) -> Reply:
        tools, choice = {one["function"]["name"]: one["function"] for one in body.get("tools") or ()}, _choice(body)
        # Where an output is forced, nothing else can be called.
        offered = {name: tool for name, tool in tools.items() if not {name, choice} & {*self._outputs}}
        asked = Asked(
            n=len(self._ran.asked),
            tools=tuple(offered),
            choice=choice,
            results=tuple(_results(body["messages"], self._outputs)),
            schemas=offered,
        )
        self._ran.asked.append(asked)
        self._error = None
        try:
            say = self._script(asked)
        except Exception as error:  # the client raises it
            self._error = error
            raise
        text, calls = say.text, list(say.calls)
        if say.output is not None and tools.keys() & {*self._outputs}:
            calls.append(Call(self._outputs[0], say.output))
        elif say.output is not None:
            text = json.dumps(say.output)
        usage: Any = say.usage is not None and Usage(*say.usage)
        made = [call(one.tool, one.arguments, id=one.key) for one in calls]
        return Calls(*made, text=text, usage=usage) if made else Text(text, usage=usage)


def _choice(body: Any) -> str | None:
    choice = body.get("tool_choice")
    return choice["function"]["name"] if isinstance(choice, Mapping) else choice


def _results(messages: Sequence[Any], outputs: Sequence[str]) -> list[str]:
    names = {made["id"]: made["function"]["name"] for one in messages for made in one.get("tool_calls") or ()}
    results = [one for one in messages if one["role"] == "tool" and names.get(one["tool_call_id"]) not in outputs]
    return [text_of(one["content"]) for one in results]


def text_of(content: Any) -> str:
    """
    What a model reads of a result, which may come in parts.
    """
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


@contextmanager
def openai_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """
    A model behind the client of OpenAI that makes the same call until its tools are off. The API would have taken each request,
    and tools that are off stay listed if they can.
    """

    def model(body: Any, n: int) -> Any:
        off = body.get("tool_choice") == "none" or not body.get("tools")
        return Text("I found nothing.") if off else Calls(call("search", {"query": "x"}))

    with ScriptedOpenAI(model) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "-")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        yield
        assert problems(server.requests) == []
        assert len(server.requests) == 7
        assert server.requests[0].get("tool_choice", "auto") == "auto"
