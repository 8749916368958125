"""
Streams that end early: nothing of them is run, kept or taken for the answer; they are asked for once more.
"""

import json

from typing import Any

import pytest

from guardrails import Policy, Registry, Validation
from guardrails.errors import ResponseFailed
from guardrails.testing.scripted_openai import Calls, Raw, Text, call
from tests.openai_api import CHAT, RESPONSES, SSE, failed
from tests.tables import table


pytestmark = pytest.mark.system


CUT = "the stream ended before its response was complete"
CALL = Calls(
    call("search", {"path": "notes/a.md"}, id="a"), call("search", {"path": "b"}, id="b"), text="Let me look at both."
)
ANSWER = Text("It rains in Kyoto, and it will rain tomorrow.")


class Tool:
    """
    A search that remembers where it looked.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.registry = Registry([self.search])

    def search(self, path: str) -> str:
        self.ran.append(path)
        return f"nothing in {path}"


def frames(way: Any, reply: Any) -> list[str]:
    """
    The events of *reply* as its server streams them.
    """
    api: Any = CHAT if way.chat else RESPONSES
    made: list[str] = api.frames({"model": "m", "stream_options": {"include_usage": True}}, reply, 0)
    return made


def ends(way: Any, frame: str) -> bool:
    """
    Whether *frame* says that the response is complete.
    """
    if not way.chat:
        return '"response.completed"' in frame
    return '"finish_reason": "' in frame


def streamed(*chunks: Any, done: bool = True) -> Raw:
    """
    Chunks of chat.completions, each a delta or a whole choice.
    """
    choices = [chunk if "delta" in chunk else {"index": 0, "delta": chunk} for chunk in chunks]
    said = [f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n" for choice in choices]
    return Raw("".join([*said, *(["data: [DONE]\n\n"] if done else [])]), SSE)


def piece(arguments: Any = None, *, name: str | None = None, **fields: Any) -> dict[str, Any]:
    """
    A delta of a tool call.
    """
    said = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    return {"tool_calls": [{**fields, "function": said}]}


@pytest.fixture(params=["sync streamed", "async streamed"])
def chat(request: pytest.FixtureRequest, all_ways: Any) -> Any:
    return next(way for way in all_ways if str(way) == f"chat {request.param}")


@pytest.fixture(params=[f"{wire} {kind} streamed" for wire in ("chat", "responses") for kind in ("sync", "async")])
def stream(request: pytest.FixtureRequest, all_ways: Any) -> Any:
    """
    The ways that stream; the others have nothing to be cut.
    """
    return next(way for way in all_ways if str(way) == request.param)


@table("reply", [CALL, ANSWER])
def test_whatever_is_missing_of_a_stream_nothing_of_it_is_obeyed(stream: Any, serve: Any, reply: Any) -> None:
    sent = frames(stream, reply)
    whole = next(at for at, frame in enumerate(sent) if ends(stream, frame)) + 1
    for count in range(len(sent) + 1):
        server, tool = serve([Raw("".join(sent[:count]), SSE), Text("done")]), Tool()
        messages = [stream.user()]
        with Policy([Validation()]).session(f"cut-{count}") as session:
            result = stream(server, session, messages=messages, tools=tool.registry, parallel=1)
        if count >= whole:
            assert tool.ran == ["notes/a.md", "b"] if reply is CALL else result.answer == ANSWER.text
            continue
        assert (result.answer, result.ended, result.requests, tool.ran) == ("done", "answered", 2, [])
        assert len(messages) == 2
        assert server.requests[0] == server.requests[1]


@table("reply", [CALL, ANSWER])
def test_a_stream_that_is_cut_again_is_one_clear_error(stream: Any, serve: Any, reply: Any) -> None:
    cut = Raw("".join(frames(stream, reply)[:4]), SSE)
    server, tool = serve([cut, cut, reply, Text("done")]), Tool()
    messages = [stream.user()]
    with Policy([Validation()]).session("cut") as session:
        with pytest.raises(ResponseFailed, match=rf"^{CUT} \(HTTP 200 from `http") as raised:
            stream(server, session, messages=messages, tools=tool.registry)
        assert (raised.value.status, raised.value.url) == (
            200,
            f"{server.base_url}/{'chat/completions' if stream.chat else 'responses'}",
        )
        assert (messages, tool.ran, len(server.requests)) == ([stream.user()], [], 2)
        # What a cut response used is not known, and never free.
        assert session.ledger.unpriced == 2
        assert stream(server, session, messages=messages, tools=tool.registry).answer in ("done", ANSWER.text)


def test_an_error_in_a_stream_is_told_at_once(stream: Any, serve: Any) -> None:
    server, tool = serve([failed(chat=stream.chat, stream=True), Text("done")]), Tool()
    messages = [stream.user()]
    with Policy().session("failed") as session:
        with pytest.raises(ResponseFailed, match=r"^server_error: out of order") as raised:
            stream(server, session, messages=messages, tools=tool.registry)
        assert (raised.value.code, raised.value.status) == ("server_error", 200)
        assert (messages, tool.ran, len(server.requests)) == ([stream.user()], [], 1)
        assert stream(server, session, messages=messages).answer == "done"


# Servers that never send a finish reason


@table(
    ("chunks", "ran"),
    [
        ([{"content": "It rains."}], []),
        ([piece('{"path": ', name="search", index=0, id="a"), piece('"a"}', index=0)], ["a"]),
        ([piece("{}", name="today", index=0, id="a")], ["today"]),
        ([piece("", name="today", index=0, id="a")], ["today"]),
        ([piece(name="today", index=0, id="a")], ["today"]),
        ([{"content": "x"}, {"delta": {}, "finish_reason": ""}], []),
        ([{"content": "x"}, {"delta": {}, "finish_reason": None}], []),
    ],
)
def test_a_stream_that_was_closed_in_order_is_whole(chat: Any, serve: Any, chunks: list[Any], ran: list[str]) -> None:
    server, tool = serve([streamed(*chunks), Text("done")]), Tool()
    made = Registry([tool.search])

    @made.register
    def today() -> str:
        tool.ran.append("today")
        return "Monday"

    with Policy([Validation()]).session("closed") as session:
        result = chat(server, session, tools=made)
    assert (tool.ran, result.ended) == (ran, "answered")
    assert result.requests == (2 if ran else 1)
