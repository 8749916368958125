"""
The two wires, each by itself, also as servers that are not OpenAI's speak them; and the body of a reply.
"""

import itertools
import json

from collections.abc import Iterator
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai._models import construct_type
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from guardrails import Policy
from guardrails.errors import ResponseFailed
from guardrails.integrations.openai.wires import Body, ChatCompletions, Responses, in_one_line
from guardrails.testing.scripted_openai import Calls, Text, Usage, call
from tests.openai_api import CHAT, RESPONSES, reasoning
from tests.tables import table


BODY = {"model": "m", "stream_options": {"include_usage": True}}
scripted = st.builds(
    lambda calls, text, items: (
        Calls(*calls, text=text, usage=Usage(10, 2), items=items)
        if calls
        else Text(text, usage=Usage(10, 2), items=items)
    ),
    st.lists(st.builds(call, st.sampled_from(["grep", "ls"]), st.text(max_size=40), id=st.just("call_0")), max_size=3),
    st.text(max_size=40),
    st.sampled_from([(), (reasoning("hm"),)]),
)


def events(api: Any, reply: Any, kind: Any) -> list[Any]:
    """
    The events of a stream, as the client has them.
    """
    data = [frame.split("data: ", 1)[1] for frame in api.frames(BODY, reply, 0)]
    return [construct_type(type_=kind, value=json.loads(each)) for each in data if "[DONE]" not in each]


@table(
    ("wire", "api", "whole", "event"),
    [
        (ChatCompletions, CHAT, ChatCompletion, ChatCompletionChunk),
        (Responses, RESPONSES, Response, ResponseStreamEvent),
    ],
)
@given(reply=scripted)
def test_b3_a_stream_is_read_as_the_whole_response_is(wire: Any, api: Any, whole: Any, event: Any, reply: Any) -> None:
    one, many = wire(), wire()
    one.read(whole.construct(**api.whole(BODY, reply, 0)))
    assert "".join(map(many.add, events(api, reply, event))) == reply.text
    first, second = one.turn(3, closed=None), many.turn(3, closed=True)
    assert (second.messages, second.calls, second.text) == (first.messages, first.calls, first.text)
    assert second.usage["total_tokens"] == first.usage["total_tokens"] == 12


# Chat.completions


def chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> ChatCompletionChunk:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return ChatCompletionChunk.construct(id="1", created=1, model="m", choices=choices, usage=usage)


def streamed(*deltas: dict[str, Any], finish: str | None = None) -> ChatCompletions:
    response = ChatCompletions()
    for delta in deltas:
        response.add(chunk(**delta))
    response.add(chunk(finish=finish))
    return response


def piece(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    return {"tool_calls": [{"index": 0, "function": {"name": name, "arguments": arguments}, **fields}]}


LS, GREP = ("b", "ls", "{}"), ("a", "grep", '{"q": 1}')
HALF, REST = '{"q"', ": 1}"


@table(
    ("deltas", "calls"),
    [
        ([piece("", id="a", name="grep"), piece(HALF), piece(REST)], [GREP]),
        # A name in pieces, or said again with each
        ([piece(None, id="a", name="gr"), piece(None, name="ep"), piece(HALF), piece(REST)], [GREP]),
        ([piece(HALF, id="a", name="grep"), piece(REST, id="a", name="grep")], [GREP]),
        ([piece('{"q": 1}', id="a", name="grep"), piece("", name="grep")], [GREP]),
        # Arguments as the object that they are of
        ([piece({"q": 1}, id="a", name="grep")], [GREP]),
        # One number for all, or none, or only now and then
        ([piece('{"q": 1}', id="a", name="grep"), piece("{}", id="b", name="ls")], [GREP, LS]),
        ([piece('{"q": 1}', id="a", name="grep", index=None), piece("{}", id="b", name="ls", index=None)], [GREP, LS]),
        ([piece(HALF, id="a", name="grep"), piece(REST, index=None)], [GREP]),
        ([piece(HALF, id="a", name="grep", index=None), piece(REST)], [GREP]),
        (
            [
                *(piece(HALF, id=id_, name="grep", index=at) for at, id_ in enumerate("ab")),
                *(piece(REST, id=id_, index=None) for id_ in "ab"),
            ],
            [GREP, ("b", *GREP[1:])],
        ),
        # By turns, with numbers that leave some out
        (
            [
                *(piece(HALF, id=id_, name="grep", index=at) for at, id_ in ((3, "a"), (7, "b"))),
                *(piece(REST, index=at) for at in (3, 7)),
            ],
            [GREP, ("b", *GREP[1:])],
        ),
        # One id for all, or none
        (
            [piece("{", id="x", name="grep", index=0), piece("[", id="x", name="ls", index=1), piece("}", index=0)],
            [("x", "grep", "{}"), ("x_7_1", "ls", "[")],
        ),
        (
            [piece('{"q": 1}', id="x", name="grep", index=None), piece('{"q": 2}', id="x", name="grep", index=None)],
            [("x", "grep", '{"q": 1}'), ("x_7_1", "grep", '{"q": 2}')],
        ),
        ([piece(None, name="ls")], [("call_7_0", "ls", "")]),
        ([piece(None, id="", name="ls")], [("call_7_0", "ls", "")]),
    ],
)
def test_calls_are_put_together_from_their_pieces(deltas: list[Any], calls: list[tuple[str, str, str]]) -> None:
    turn = streamed(*deltas, finish="tool_calls").turn(7, closed=True)
    assert [(one.id, one.tool, one.arguments) for one in turn.calls] == calls
    assert [wire["id"] for wire in turn.messages[0]["tool_calls"]] == [id_ for id_, _, _ in calls]


def test_fields_beyond_the_wire_s_own_are_given_back() -> None:
    signature = {"google": {"thought_signature": "abc"}}
    response = streamed(piece("{}", id="a", name="grep", extra_content=signature), piece("", nothing=None))
    turn = response.turn(1, closed=True)
    assert turn.messages[0]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}, "extra_content": signature}
    ]


def test_reasoning_goes_back_with_the_calls_that_came_of_it_and_with_no_answer() -> None:
    steps = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    thoughts: list[dict[str, Any]] = [
        {"reasoning_content": "Which "},
        {"reasoning_content": "file?"},
        {"reasoning_details": steps},
    ]
    [message] = streamed(*thoughts, piece("{}", id="a", name="ls"), finish="tool_calls").turn(1, closed=True).messages
    assert (message["reasoning_content"], message["reasoning_details"]) == ("Which file?", steps)
    [answer] = streamed(*thoughts, {"content": "a.c"}, finish="stop").turn(1, closed=True).messages
    assert answer == {"role": "assistant", "content": "a.c"}


@table("finish", ["length", "content_filter"])
def test_a_call_cut_before_its_arguments_does_not_pass_for_one_without(finish: str) -> None:
    complete, cut = piece("", id="a", name="ls"), piece("", id="b", name="rm", index=1)
    response = streamed(complete, cut, finish=finish)
    assert [c.arguments for c in response.turn(1, closed=True).calls] == ["", "{"]
    assert [c["function"]["arguments"] for c in response.turn(1, closed=True).messages[0]["tool_calls"]] == ["", ""]
    assert [c.arguments for c in streamed(complete, cut, finish="tool_calls").turn(1, closed=True).calls] == ["", ""]


@table(
    ("deltas", "whole"),
    [
        ([{"content": "It rains."}], True),
        ([piece('{"path": ', name="search", id="a"), piece('"a"}')], True),
        ([piece(None, name="today", id="a")], True),
        ([piece('{"path": ', name="search", id="a")], False),
    ],
)
def test_a_stream_without_a_finish_reason_is_whole_if_it_was_closed_in_order(deltas: list[Any], whole: bool) -> None:
    response = streamed(*deltas)
    for closed in (True, False):
        if whole and closed:
            assert response.turn(1, closed=closed).messages
        else:
            with pytest.raises(ResponseFailed, match="ended before its response was complete"):
                response.turn(1, closed=closed)


# Responses


def read(reply: Any) -> Responses:
    response = Responses()
    response.read(Response.construct(**RESPONSES.whole(BODY, reply, 0)))
    return response


@pytest.mark.system
def test_reasoning_is_passed_back_unchanged(way: Any, serve: Any) -> None:
    if way.chat:
        return
    thought = reasoning("which file?")
    odd: dict[str, Any] = {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "x\x00",
        "status": None,
        "new": 1,
    }
    server = serve(
        [
            Calls(call("look", {}), items=(thought,), text="Looking."),
            Calls(call("look", {}), items=(odd,)),
            Text("done"),
        ]
    )

    def look() -> str:
        return "ok"

    with Policy().session("r") as session:
        result = way(server, session, tools=[look], store=False, include=["reasoning.encrypted_content"])
    kinds = ["user", "reasoning", "message", "function_call", "function_call_output"]
    assert [item.get("type", item.get("role")) for item in result.messages[:5]] == kinds
    assert server.requests[2]["input"][1] == thought
    assert server.requests[2]["input"][5] == odd
    assert all(body["store"] is False for body in server.requests)
    assert [len(body["input"]) for body in server.requests] == [1, 5, 8]


def test_so_it_is_over_responses() -> None:
    cut = read(Calls(call("a", ""), call("b", ""), finish_reason="length")).turn(0, closed=None)
    assert [c.arguments for c in cut.calls] == ["", "{"]


def test_a_stream_that_ends_early_and_an_error_event_are_failures() -> None:
    response = Responses()
    for event in events(RESPONSES, Calls(call("x")), ResponseStreamEvent)[:-1]:
        response.add(event)
    with pytest.raises(ResponseFailed, match="ended before its response was complete"):
        response.turn(0, closed=None)
    with pytest.raises(ResponseFailed, match=r"^rate_limit: slow down$"):
        response.add({"type": "error", "code": "rate_limit", "message": "slow down"})


# The body


class Stream:
    """
    A stream as the client has it, whose body comes in *pieces*.
    """

    def __init__(self, *pieces: bytes, url: str = "http://127.0.0.1/v1", status_code: int = 200) -> None:
        self.http_response = self
        self.pieces = pieces
        self.url = url
        self.status_code = status_code
        self.headers = {"content-type": "text/event-stream"}

    def parse(self) -> "Stream":
        return self

    def iter_bytes(self) -> Iterator[bytes]:
        return iter(self.pieces)

    async def aiter_bytes(self) -> Any:
        for piece in self.pieces:
            yield piece


def seen(body: bytes, cuts: list[int]) -> Body:
    """
    *body* in pieces, seen to its end.
    """
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    made = Stream(*(body[a:b] for a, b in itertools.pairwise(places)))
    passing = Body(None, made)
    assert b"".join(passing.stream(made).iter_bytes()) == body
    return passing


@given(
    texts=st.lists(st.sampled_from(["data: [DONE]", "\ndata: [DONE]", "it rains", "[DONE]", "d"]), max_size=4),
    end=st.sampled_from(["data: [DONE]\n\n", "data:[DONE]", "", "data: [DON", ": [DONE]\n", "xdata: [DONE]\n"]),
    eol=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_the_end_of_a_stream_is_known_wherever_it_is_cut_into_pieces(
    texts: list[str], end: str, eol: str, cuts: list[int]
) -> None:
    said = "".join(f"data: {json.dumps({'content': text})}{eol}{eol}" for text in texts) + end
    assert seen(said.encode(), cuts).closed is (end in ("data: [DONE]\n\n", "data:[DONE]"))


@table(
    ("said", "key", "shown"),
    [
        ("bad key local-key-17, try again", "local-key-17", "bad key [redacted], try again"),
        ("bad key sk-abcdefghijklmnopqrstuvwx", None, "bad key [redacted]"),
        ("none of it", "none", "none of it"),
        ("x" * 190 + " sk-abcdefghijklmnopqrstuvwx", None, "x" * 190 + " [redacted"),
        ("é" * 150, None, "é" * 100),
        ("x" + "é" * 150, None, "x" + "é" * 99),
        ("a\x00\x1b[2J\r\n\tb\x9b", None, "a[2J b"),
        ("", "local-key-17", ""),
    ],
)
def test_no_key_and_no_control_character_is_shown(said: str, key: str | None, shown: str) -> None:
    assert in_one_line(said, key) == shown
