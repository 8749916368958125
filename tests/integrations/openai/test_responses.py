"""
The Responses wire.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response as Whole

from guardrails import Policy
from guardrails.errors import ResponseFailed
from guardrails.integrations.openai.wires import Responses as Response
from guardrails.testing.scripted_openai import Calls, Text, Usage, call
from tests.openai_api import RESPONSES, reasoning


def read(reply: Any, n: int = 0) -> Response:
    response = Response()
    response.read(Whole.construct(**RESPONSES.whole({"model": "m"}, reply, n)))
    return response


def events(reply: Any) -> list[Any]:
    from openai._models import construct_type
    from openai.types.responses import ResponseStreamEvent

    data = [json.loads(frame.split("data: ", 1)[1]) for frame in RESPONSES.frames({"model": "m"}, reply, 0)]
    return [construct_type(type_=ResponseStreamEvent, value=event) for event in data]


scripted = st.builds(
    lambda calls, text, thought: (
        Calls(*calls, text=text, usage=Usage(10, 2), items=thought)
        if calls
        else Text(text, usage=Usage(10, 2), items=thought)
    ),
    st.lists(st.builds(call, st.sampled_from(["grep", "ls"]), st.text(max_size=40), id=st.just("call_0")), max_size=3),
    st.text(max_size=40),
    st.sampled_from([(), (reasoning("hm"),)]),
)


@given(reply=scripted)
def test_b3_a_stream_is_read_as_the_whole_response_is(reply: Any) -> None:
    one, many = read(reply), Response()
    said = "".join(many.add(event) for event in events(reply))
    assert said == reply.text
    assert many.turn(3, closed=None).calls == one.turn(3, closed=None).calls
    assert many.turn(3, closed=None).text == one.turn(3, closed=None).text
    assert many.turn(3, closed=None).usage["total_tokens"] == one.turn(3, closed=None).usage["total_tokens"] == 12
    assert many.turn(3, closed=None).messages == one.turn(3, closed=None).messages


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


@pytest.mark.system
def test_a_previous_response_of_the_caller_s_is_gone_on_from(way: Any, serve: Any) -> None:
    if way.chat:
        return
    server = serve([Text("one"), Calls(call("look", {})), Text("two")])

    def look() -> str:
        return "ok"

    with Policy().session("x") as session:
        way(server, session)
        way(server, session, tools=[look], previous_response_id="resp_0", messages="and now?")
    assert [body.get("previous_response_id") for body in server.requests] == [None, "resp_0", "resp_0"]
    assert [len(body["input"]) for body in server.requests] == [1, 1, 3]


def test_a_call_cut_before_its_arguments_does_not_pass_for_one_without() -> None:
    cut = read(Calls(call("a", ""), call("b", ""), finish_reason="length")).turn(0, closed=None)
    assert [c.arguments for c in cut.calls] == ["", "{"]


def test_a_stream_that_ends_early_and_an_error_event_are_failures() -> None:
    response = Response()
    for event in events(Calls(call("x")))[:-1]:
        response.add(event)
    with pytest.raises(ResponseFailed, match="ended before its response was complete"):
        response.turn(0, closed=None)
    with pytest.raises(ResponseFailed, match=r"^rate_limit: slow down$"):
        response.add({"type": "error", "code": "rate_limit", "message": "slow down"})
