"""
The chat.completions wire, also as servers that are not OpenAI's speak it.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from guardrails.integrations.openai.wires import ChatCompletions as Response
from guardrails.testing.scripted_openai import Calls, Text, Usage, call
from tests.openai_api import CHAT
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


def piece(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    return {"tool_calls": [{"index": 0, "function": {"name": name, "arguments": arguments}, **fields}]}


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
    made: Any = CHAT.whole(body, reply, 0)
    text = one.read(ChatCompletion.construct(**made))
    said = [
        many.add(ChatCompletionChunk.construct(**json.loads(frame.removeprefix("data: "))))
        for frame in CHAT.frames(body, reply, 0)[:-1]
    ]

    assert "".join(said) == text == reply.text
    assert many.turn(3, closed=True).messages == one.turn(3, closed=None).messages
    assert many.turn(3, closed=True).calls == one.turn(3, closed=None).calls
    assert many.turn(3, closed=True).text == one.turn(3, closed=None).text
    assert many.turn(3, closed=True).usage["total_tokens"] == one.turn(3, closed=None).usage["total_tokens"] == 12


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
