"""
The scripted server, seen through the real openai client.
"""

import socket
import threading

from typing import Any

import pytest

from openai import APIConnectionError, BadRequestError, DefaultHttpxClient, OpenAI

from guardrails.testing.scripted_openai import BrokenStream, Calls, Fail, Reply, ScriptedOpenAI, Text, Usage, call
from tests.tables import table


pytestmark = pytest.mark.system


USER = {"role": "user", "content": "go"}
TOOLS = [{"type": "function", "function": {"name": "grep", "parameters": {"type": "object", "properties": {}}}}]


def connect(server: ScriptedOpenAI, **options: Any) -> OpenAI:
    return OpenAI(base_url=server.base_url, api_key="-", **{"max_retries": 0} | options)


def ask(client: OpenAI, messages: list[Any] | None = None, **options: Any) -> Any:
    return client.chat.completions.create(model="gpt-5-mini", messages=messages or [USER], **options)


def asks(*calls: tuple[str, str]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [{"id": i, "type": "function", "function": {"name": n, "arguments": "{}"}} for i, n in calls],
    }


def result(id_: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "ok"}


def test_a_list_is_played_in_order() -> None:
    with ScriptedOpenAI([Calls(call("grep", {"q": "é"}, id="c1")), Text("done")]) as server, connect(server) as client:
        first = ask(client, tools=TOOLS)
        second = ask(client, [USER, asks(("c1", "grep")), result("c1")], tools=TOOLS)

    [wire] = first.choices[0].message.tool_calls
    assert (wire.id, wire.function.name, wire.function.arguments) == ("c1", "grep", '{"q": "é"}')
    assert (first.choices[0].finish_reason, first.choices[0].message.content) == ("tool_calls", None)
    assert (second.choices[0].finish_reason, second.choices[0].message.content) == ("stop", "done")
    assert [len(body["messages"]) for body in server.requests] == [1, 3]


def test_a_request_beyond_the_list_fails_and_is_not_retried() -> None:
    with (
        ScriptedOpenAI([]) as server,
        connect(server, max_retries=2) as client,
        pytest.raises(BadRequestError, match="0 replies, this is request 1"),
    ):
        ask(client)
    assert len(server.requests) == 1


def test_a_streamed_call_names_itself_once_and_sends_its_arguments_in_pieces() -> None:
    arguments = '{"pattern": "error", "path": "src/main.c"}'
    reply = Calls(call("grep", arguments, id="a"), call("ls", id="b"), text="let me look")
    with ScriptedOpenAI([reply]) as server, connect(server) as client:
        chunks = list(ask(client, tools=TOOLS, stream=True))

    deltas = [piece for c in chunks for piece in c.choices[0].delta.tool_calls or []]
    assert [(d.index, d.id, d.function.name) for d in deltas if d.id] == [(0, "a", "grep"), (1, "b", "ls")]
    assert all(d.function.name is None for d in deltas if not d.id)
    first = [d.function.arguments for d in deltas if d.index == 0]
    assert first[0] == ""
    assert len(first) > 3
    assert "".join(first) == arguments
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "let me look"
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == ["tool_calls"]
    assert all(c.usage is None for c in chunks)


def test_a_streamed_usage_comes_only_when_asked_for_and_without_choices() -> None:
    reply = Text("hello", usage=Usage(100, 20, cached=64))
    with ScriptedOpenAI([reply]) as server, connect(server) as client:
        chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))

    assert [len(c.choices) for c in chunks][-2:] == [1, 0]
    assert [c.usage for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    used = chunks[-1].usage
    assert (used.prompt_tokens, used.completion_tokens, used.prompt_tokens_details.cached_tokens) == (100, 20, 64)


ORPHAN = "is no response to a preceding call"
MISSING = "did not have response messages: "


@table(
    ("messages", "error", "param"),
    [
        ([asks(("a", "grep"))], MISSING + "a", "messages"),
        ([asks(("a", "grep"), ("b", "grep")), result("a")], MISSING + "b", "messages"),
        ([asks(("a", "grep"), ("b", "grep")), result("a"), USER, result("b")], MISSING + "b", "messages[3]"),
        ([asks(("a", "grep")), USER, result("a")], MISSING + "a", "messages[2]"),
        ([asks(("a", "grep")), result("a"), result("a")], ORPHAN, "messages[3]"),
        ([asks(("a", "grep")), result("b")], ORPHAN, "messages[2]"),
        ([result("a")], ORPHAN, "messages[1]"),
        ([asks()], "expected a string", "messages[1].content"),
        ([{"role": "assistant", "content": None}], "expected a string", "messages[1].content"),
        ([{"role": "robot", "content": ""}], "'robot'", "messages[1].role"),
        ([asks(("a", "grep")), {**result("a"), "content": None}], "expected a string", "messages[2].content"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "grep"}}]}],
            "tool_calls[0]",
            "messages[1].tool_calls[0]",
        ),
    ],
)
def test_a_conversation_that_the_api_refuses_is_refused(messages: list[Any], error: str, param: str) -> None:
    with ScriptedOpenAI([]) as server, connect(server) as client, pytest.raises(BadRequestError) as caught:
        ask(client, [USER, *messages], tools=TOOLS)

    body = caught.value.body
    assert isinstance(body, dict)
    assert set(body) == {"message", "type", "param", "code"}
    assert error in body["message"]
    assert (body["type"], body["param"]) == ("invalid_request_error", param)
    assert server.refused == [body["message"]]


@table(
    "messages",
    [
        [asks(("a", "grep"), ("b", "grep")), result("b"), result("a")],
        [asks(("call_0", "grep")), result("call_0"), asks(("call_0", "grep")), result("call_0")],
        [asks(("call_0", "grep"), ("call_0", "grep")), result("call_0"), result("call_0")],
        [{"role": "assistant", "content": "", "later_field": 1}, USER],
        [{"role": "assistant", "refusal": "no"}, {"role": "developer", "content": [{"type": "text", "text": "x"}]}],
    ],
)
def test_a_conversation_that_the_api_takes_is_taken(messages: list[Any]) -> None:
    with ScriptedOpenAI([Text("ok")]) as server, connect(server) as client:
        response = ask(client, [USER, *messages], tools=TOOLS, extra_body={"unknown": True})
    assert response.choices[0].message.content == "ok"
    assert server.requests[0]["unknown"] is True


ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOLS[0]]}}


@table(
    ("options", "error"),
    [
        ({"messages": []}, "messages"),
        ({"tools": []}, "'tools'"),
        ({"tools": [{"type": "function", "function": {"name": "no spaces"}}]}, "tools[0]"),
        ({"tool_choice": "none"}, "only allowed when"),
        ({"parallel_tool_calls": False}, "only allowed when"),
        ({"tools": TOOLS, "tool_choice": "any"}, "Invalid value for 'tool_choice'"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "grep"}}, "Invalid 'tool_choice'"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "rm"}}}, "'rm' not found"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "grep"}}}, None),
        ({"tools": TOOLS, "tool_choice": ALLOWED}, None),
        ({"stream_options": {"include_usage": True}}, "only allowed when 'stream'"),
    ],
)
def test_options_are_checked_as_the_api_does(options: dict[str, Any], error: str | None) -> None:
    with ScriptedOpenAI([Text("ok")]) as server, connect(server) as client:
        body = {"model": "m", "messages": [USER]} | options
        if error is None:
            client.post("/chat/completions", body=body, cast_to=object)
        else:
            with pytest.raises(BadRequestError) as caught:
                client.post("/chat/completions", body=body, cast_to=object)
            assert error in str(caught.value)


def test_a_client_retries_after_a_429_as_told() -> None:
    replies: list[Reply] = [Fail(429, {"retry-after-ms": "1"}), Fail(500, {"retry-after-ms": "1"}), Text("ok")]
    with ScriptedOpenAI(replies) as server, connect(server, max_retries=2) as client:
        assert ask(client).choices[0].message.content == "ok"
    assert len(server.requests) == 3


def test_a_client_asks_without_a_socket_by_its_transport() -> None:
    server = ScriptedOpenAI([Text("hello"), Text("streamed"), BrokenStream(Text("cut"))])
    http = DefaultHttpxClient(transport=server.transport)
    with OpenAI(base_url="http://nowhere/v1", api_key="-", max_retries=0, http_client=http) as client:
        assert ask(client).choices[0].message.content == "hello"
        assert "".join(c.choices[0].delta.content or "" for c in ask(client, stream=True)) == "streamed"
        with pytest.raises(APIConnectionError):
            list(ask(client, stream=True))
    assert len(server.requests) == 3


def test_it_stops_cleanly_with_an_idle_connection_open() -> None:
    before = threading.active_count()
    with ScriptedOpenAI([Text("ok")]) as server:
        client = connect(server)
        ask(client)
        port = int(server.base_url.split(":")[2].split("/")[0])
        idle = socket.create_connection(("127.0.0.1", port))
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.base_url
    idle.close()
    client.close()
