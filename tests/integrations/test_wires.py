"""
The two wires, each by itself, also as servers that are not OpenAI's speak them; and the body of a reply.
"""

import itertools
import json

from types import SimpleNamespace
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai._models import construct_type
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from guardrails.errors import ResponseFailed
from guardrails.integrations.openai.wires import Body, ChatCompletions, Responses, in_one_line
from guardrails.testing.scripted_openai import Calls, Text, Usage, call
from tests.openai_api import CHAT, RESPONSES, reasoning
from tests.tables import table

from .conftest import Search, search


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


def streamed(*deltas: dict[str, Any], finish: str | None = None) -> ChatCompletions:
    response = ChatCompletions()
    for n, delta in enumerate((*deltas, {})):
        choices = [{"index": 0, "delta": delta, "finish_reason": finish if n == len(deltas) else None}]
        response.add(ChatCompletionChunk.construct(id="1", created=1, model="m", choices=choices, usage=None))
    return response


def piece(name: str | None = None, arguments: Any = None, id: str | None = None, index: int | None = 0) -> Any:
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


ONE, HALF, REST = '{"q": 1}', '{"q"', ": 1}"
LS, GREP, GREP_B = ("b", "ls", "{}"), ("a", "grep", ONE), ("b", "grep", ONE)


@table(
    ("deltas", "calls"),
    [
        ([piece("grep", "", "a"), piece(None, HALF), piece(None, REST)], [GREP]),
        # A name in pieces, or said again with each
        ([piece("gr", None, "a"), piece("ep"), piece(None, HALF), piece(None, REST)], [GREP]),
        ([piece("grep", HALF, "a"), piece("grep", REST, "a")], [GREP]),
        ([piece("grep", ONE, "a"), piece("grep", "")], [GREP]),
        # Arguments as the object that they are of
        ([piece("grep", {"q": 1}, "a")], [GREP]),
        # One number for all, or none, or only now and then
        ([piece("grep", ONE, "a"), piece("ls", "{}", "b")], [GREP, LS]),
        ([piece("grep", ONE, "a", None), piece("ls", "{}", "b", None)], [GREP, LS]),
        ([piece("ls", "", "a"), piece("ls", "{}", "b")], [("a", "ls", ""), LS]),
        ([piece("grep", HALF, "a"), piece(None, REST, index=None)], [GREP]),
        ([piece("grep", HALF, "a", None), piece(None, REST)], [GREP]),
        # By turns: found by their ids, or by numbers that leave some out
        (
            [piece("grep", HALF, "a"), piece("grep", HALF, "b", 1), *(piece(None, REST, id_, None) for id_ in "ab")],
            [GREP, GREP_B],
        ),
        (
            [piece("grep", HALF, "a", 3), piece("grep", HALF, "b", 7), *(piece(None, REST, index=at) for at in (3, 7))],
            [GREP, GREP_B],
        ),
        # One id for all, or none
        (
            [piece("grep", "{", "x"), piece("ls", "[", "x", 1), piece(None, "}")],
            [("x", "grep", "{}"), ("x_7_1", "ls", "[")],
        ),
        (
            [piece("grep", ONE, "x", None), piece("grep", "{}", "x", None)],
            [("x", "grep", ONE), ("x_7_1", "grep", "{}")],
        ),
        ([piece("ls")], [("call_7_0", "ls", "")]),
        ([piece("ls", id="")], [("call_7_0", "ls", "")]),
    ],
)
def test_calls_are_put_together_from_their_pieces(deltas: list[Any], calls: list[tuple[str, str, str]]) -> None:
    turn = streamed(*deltas, finish="tool_calls").turn(7, closed=True)
    assert [(one.id, one.tool, one.arguments) for one in turn.calls] == calls
    assert [wire["id"] for wire in turn.messages[0]["tool_calls"]] == [id_ for id_, _, _ in calls]


def test_what_a_provider_wants_back_goes_back_with_the_calls_that_came_of_it_and_with_no_answer() -> None:
    signed, steps = piece("ls", "{}", "a"), [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    signature = {"extra_content": {"google": {"thought_signature": "abc"}}}
    signed["tool_calls"][0] |= {**signature, "nothing": None}
    thoughts: list[dict[str, Any]] = [
        {"reasoning_content": "Which ", "reasoning": "hm"},
        {"reasoning_content": "file?", **signature},
        {"reasoning_details": steps[:1], "thought_signature": "sig"},
    ]
    kept = {
        "reasoning_content": "Which file?",
        "reasoning": "hm",
        "reasoning_details": steps,
        "thought_signature": "sig",
    }
    [message] = streamed(*thoughts, signed, finish="tool_calls").turn(1, closed=True).messages
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}, **signature}
    assert message == {"role": "assistant", "tool_calls": [call], **kept, **signature}
    [answer] = streamed(*thoughts, {"content": "a.c"}, finish="stop").turn(1, closed=True).messages
    assert answer == {"role": "assistant", "content": "a.c"}


@table("finish", ["length", "content_filter"])
def test_a_call_cut_before_its_arguments_does_not_pass_for_one_without(finish: str) -> None:
    two = piece("ls", "", "a"), piece("rm", "", "b", 1)
    cut, whole = streamed(*two, finish=finish), streamed(*two, finish="tool_calls")
    assert [c.arguments for c in cut.turn(1, closed=True).calls] == ["", "{"]
    assert [c["function"]["arguments"] for c in cut.turn(1, closed=True).messages[0]["tool_calls"]] == ["", ""]
    assert [c.arguments for c in whole.turn(1, closed=True).calls] == ["", ""]
    response = Responses()
    response.read(
        Response.construct(**RESPONSES.whole(BODY, Calls(call("a", ""), call("b", ""), finish_reason=finish), 0))
    )
    assert [c.arguments for c in response.turn(0, closed=None).calls] == ["", "{"]


@table(
    ("deltas", "whole"),
    [
        ([{"content": "It rains."}], True),
        ([piece("search", HALF, "a"), piece(None, REST)], True),
        ([piece("today", None, "a")], True),
        ([piece("search", HALF, "a")], False),
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


@pytest.mark.system
def test_reasoning_is_passed_back_unchanged(way: Any, serve: Any) -> None:
    if way.chat:
        return
    thought = reasoning("which file?")
    odd: Any = {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "x\x00",
        "status": None,
        "new": 1,
    }
    first = Calls(search("a"), items=(thought,), text="Looking.")
    server = serve([first, Calls(search("b"), items=(odd,)), Text("done")])
    result = way(server, tools=Search().tools, store=False, include=["reasoning.encrypted_content"])
    kinds = ["user", "reasoning", "message", "function_call", "function_call_output"]
    assert [item.get("type", item.get("role")) for item in result.messages[:5]] == kinds
    assert (server.requests[2]["input"][1], server.requests[2]["input"][5]) == (thought, odd)
    assert all(body["store"] is False for body in server.requests)
    assert [len(body["input"]) for body in server.requests] == [1, 5, 8]


def test_an_error_event_is_the_server_s_own_error() -> None:
    with pytest.raises(ResponseFailed, match=r"^rate_limit: slow down$"):
        Responses().add({"type": "error", "code": "rate_limit", "message": "slow down"})


# The body


def seen(body: bytes, cuts: list[int]) -> Body:
    """
    *body* in pieces, as the client has its stream, seen to its end.
    """
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    stream: Any = SimpleNamespace(
        iter_bytes=lambda: (body[a:b] for a, b in itertools.pairwise(places)), aiter_bytes=None, parse=lambda: stream
    )
    stream.http_response = stream
    passing = Body(None, stream)
    assert b"".join(passing.stream(stream).iter_bytes()) == body
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
