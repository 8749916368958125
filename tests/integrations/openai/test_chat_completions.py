"""
The chat.completions wire, also as servers that are not OpenAI's speak it.
"""

import itertools

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from guardrails.integrations.openai.chat_completions import Response
from guardrails.session.turns.loop import RequestedCall
from guardrails.testing.chat_completions import frames, whole
from guardrails.testing.replies import Calls, Text, Usage, call
from tests.tables import table


def chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> ChatCompletionChunk:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return ChatCompletionChunk.construct(id="1", created=1, model="m", choices=choices, usage=usage)


def streamed(*deltas: dict[str, Any], finish: str | None = None) -> Response:
    response = Response()
    for delta in deltas:
        response.add(chunk(**delta))
    response.add(chunk(finish=finish))
    return response


def piece(arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    return {"tool_calls": [{"index": 0, "function": {"name": name, "arguments": arguments}, **fields}]}


def completed(message: dict[str, Any], finish: str | None = "stop") -> Response:
    response = Response()
    choices = [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]
    response.read(ChatCompletion.construct(id="1", created=1, model="m", choices=choices))
    return response


scripted = st.builds(
    lambda calls, text: Calls(*calls, text=text, usage=Usage(10, 2)) if calls else Text(text, usage=Usage(10, 2)),
    st.lists(st.builds(call, st.sampled_from(["grep", "ls"]), st.text(max_size=40), id=st.just("call_0")), max_size=3),
    st.text(max_size=40),
)


@given(reply=scripted)
def test_b3_a_stream_is_read_as_the_whole_response_is(reply: Text | Calls) -> None:
    import json

    body = {"model": "m", "stream_options": {"include_usage": True}}
    one, many = Response(), Response()
    made: Any = whole(body, reply, 0)
    text = one.read(ChatCompletion.construct(**made))
    said = [
        many.add(ChatCompletionChunk.construct(**json.loads(frame.removeprefix("data: "))))
        for frame in frames(body, reply, 0)[:-1]
    ]

    assert "".join(said) == text == reply.text
    assert many.messages() == one.messages()
    assert many.turn(3).calls == one.turn(3).calls
    assert many.turn(3).text == one.turn(3).text
    assert many.turn(3).usage.total_tokens == one.turn(3).usage.total_tokens == 12


def test_a_message_has_content_only_where_there_is_text() -> None:
    wire = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"a":  1}'}}
    assert completed({"content": None, "tool_calls": [wire]}).messages() == [
        {"role": "assistant", "tool_calls": [wire]}
    ]
    assert completed({"content": "", "tool_calls": [wire]}).messages() == [{"role": "assistant", "tool_calls": [wire]}]
    assert completed({"content": "hm", "tool_calls": [wire]}).messages() == [
        {"role": "assistant", "content": "hm", "tool_calls": [wire]}
    ]
    assert completed({"content": "done"}).messages() == [{"role": "assistant", "content": "done"}]


def test_content_in_parts_is_joined() -> None:
    response = completed(
        {"content": [{"type": "text", "text": "one "}, {"type": "x"}, {"type": "text", "text": "two"}]}
    )
    assert response.turn(1).texts == ("one ", "two")
    assert response.messages() == [{"role": "assistant", "content": "one two"}]


def test_a_refusal_is_what_the_model_says() -> None:
    assert completed({"content": None, "refusal": "I cannot"}).turn(1).text == "I cannot"
    assert streamed({"refusal": "I "}, {"refusal": "cannot"}).messages() == [
        {"role": "assistant", "content": "I cannot"}
    ]


def test_a_response_without_choices_says_nothing() -> None:
    response = Response()
    assert response.read(ChatCompletion.construct(id="1", created=1, model="m", choices=None)) == ""
    assert response.add(ChatCompletionChunk.construct(id="1", created=1, model="m", choices=[])) == ""
    assert response.turn(1).text == ""
    assert response.turn(1).calls == ()


def test_only_the_first_choice_counts() -> None:
    response = Response()
    choices = [{"index": i, "delta": {"content": t}, "finish_reason": None} for i, t in ((1, "other"), (0, "mine"))]
    response.add(ChatCompletionChunk.construct(id="1", created=1, model="m", choices=choices))
    assert response.turn(1).text == "mine"


@table(
    ("deltas", "calls"),
    [
        (
            [piece("", id="a", name="grep"), piece('{"q"'), piece(": 1}")],
            [("a", "grep", '{"q": 1}')],
        ),
        (
            [piece('{"q"', id="a", name="grep"), piece(": 1}", id="a", name="grep")],
            [("a", "grep", '{"q": 1}')],
        ),
        (
            [piece("{}", id="a", name="grep"), piece("{}", id="b", name="ls")],
            [("a", "grep", "{}"), ("b", "ls", "{}")],
        ),
        (
            [piece("{}", id="a", name="grep", index=None), piece("{}", id="b", name="ls", index=None)],
            [("a", "grep", "{}"), ("b", "ls", "{}")],
        ),
        (
            [piece("{", id="x", name="grep", index=0), piece("[", id="x", name="ls", index=1), piece("}", index=0)],
            [("x", "grep", "{}"), ("x_7_1", "ls", "[")],
        ),
        ([piece(None, name="ls")], [("call_7_0", "ls", "")]),
        ([piece(None, id="", name="ls")], [("call_7_0", "ls", "")]),
    ],
)
def test_calls_are_put_together_from_their_pieces(deltas: list[Any], calls: list[tuple[str, str, str]]) -> None:
    response = streamed(*deltas, finish="tool_calls")
    assert response.turn(7).calls == tuple(itertools.starmap(RequestedCall, calls))
    assert [wire["id"] for wire in response.messages()[0]["tool_calls"]] == [id_ for id_, _, _ in calls]


def test_arguments_that_came_as_an_object_are_kept_as_text() -> None:
    wire = {"id": "a", "type": "function", "function": {"name": "grep", "arguments": {"q": 1}}}
    response = completed({"tool_calls": [wire]})
    assert response.turn(1).calls == (RequestedCall("a", "grep", '{"q": 1}'),)


def test_fields_beyond_the_wire_s_own_are_given_back() -> None:
    signature = {"google": {"thought_signature": "abc"}}
    response = streamed(piece("{}", id="a", name="grep", extra_content=signature), piece("", nothing=None))
    assert response.messages()[0]["tool_calls"] == [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "grep", "arguments": "{}"},
            "extra_content": signature,
        }
    ]


def test_a_custom_tool_gets_its_input() -> None:
    wire = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    whole_response = completed({"tool_calls": [wire]})
    pieces = streamed(
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "select"}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": " 1"}}]},
    )
    for response in (whole_response, pieces):
        assert response.turn(1).calls == (RequestedCall("a", "sql", {"input": "select 1"}, "custom"),)
        assert response.messages()[0]["tool_calls"] == [wire]


@table("finish", ["length", "content_filter"])
def test_a_call_cut_before_its_arguments_does_not_pass_for_one_without(finish: str) -> None:
    complete, cut = piece("", id="a", name="ls"), piece("", id="b", name="rm", index=1)
    response = streamed(complete, cut, finish=finish)
    assert [c.arguments for c in response.turn(1).calls] == ["", "{"]
    assert [c["function"]["arguments"] for c in response.messages()[0]["tool_calls"]] == ["", ""]
    assert [c.arguments for c in streamed(complete, cut, finish="tool_calls").turn(1).calls] == ["", ""]


def test_the_last_usage_of_a_stream_counts() -> None:
    response = Response()
    for total in (3, 9):
        response.add(chunk(usage={"prompt_tokens": total, "completion_tokens": 0, "total_tokens": total}, content="x"))
    response.add(chunk(finish="stop"))
    assert response.turn(1).usage.total_tokens == 9
