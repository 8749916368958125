"""
The Responses wire.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response as Whole

from guardrails import Policy, ResponseFailed
from guardrails.integrations.openai import Responses
from guardrails.integrations.openai.responses import Response
from guardrails.session.turns.loop import RequestedCall
from guardrails.testing.replies import Calls, Failed, Reply, Text, Usage, call, reasoning
from guardrails.testing.responses import frames, whole


def read(reply: Any, n: int = 0) -> Response:
    response = Response()
    response.read(Whole.construct(**whole({"model": "m"}, reply, n)))
    return response


def events(reply: Any) -> list[Any]:
    from openai._models import construct_type
    from openai.types.responses import ResponseStreamEvent

    data = [json.loads(frame.split("data: ", 1)[1]) for frame in frames({"model": "m"}, reply, 0)]
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
    assert many.turn(3).calls == one.turn(3).calls
    assert many.turn(3).text == one.turn(3).text
    assert many.turn(3).usage.total_tokens == one.turn(3).usage.total_tokens == 12
    assert many.messages() == one.messages()


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


def test_chained_each_request_brings_only_what_is_new(chained: Any, serve: Any) -> None:
    server = serve(
        [Calls(call("look", {}, id="a"), call("look", {}, id="b")), Calls(call("look", {}, id="a")), Text("done")]
    )

    def look() -> str:
        return "ok"

    with Policy().session("chain") as session:
        result = chained(server, session, tools=[look])
    assert [body.get("previous_response_id") for body in server.requests] == [None, "resp_0", "resp_1"]
    assert [[i.get("call_id", "user") for i in body["input"]] for body in server.requests] == [
        ["user"],
        ["a", "b"],
        ["a"],
    ]
    assert [item.get("type") for item in result.messages].count("function_call") == 3
    assert result.answer == "done"


def test_chained_a_request_that_fails_is_sent_again_whole_by_the_next_loop(chained: Any, serve: Any) -> None:
    from openai import APIError

    from guardrails.testing.replies import Fail

    server = serve([Calls(call("look", {})), Fail(500), Text("done")])
    messages = [chained.user()]

    def look() -> str:
        return "ok"

    with Policy().session("chain") as session:
        with pytest.raises(APIError):
            chained(server, session, messages=messages, tools=[look])
        assert chained(server, session, messages=messages, tools=[look]).answer == "done"
    assert [len(body["input"]) for body in server.requests] == [1, 1, 3]


@pytest.mark.parametrize(
    ("wire", "options", "said"),
    [
        (Responses(chained=True), {"store": False}, "`store=False` leaves the loop of a chained conversation"),
        (Responses(), {"conversation": "conv_1"}, r"`conversation` has the server keep what the loop sends again"),
        (Responses(), {"background": True}, "`background=True` leaves the loop without"),
    ],
)
def test_what_a_loop_cannot_go_on_from_is_refused_at_once(wire: Any, options: Any, said: str) -> None:
    from guardrails.integrations.openai import run

    with Policy().session("x") as session, pytest.raises(TypeError, match=said):
        run(None, session, model="m", messages="go", wire=wire, **options)


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


def test_chained_a_previous_response_of_the_caller_s_begins_the_chain(chained: Any, serve: Any) -> None:
    server = serve([Text("one"), Calls(call("look", {})), Text("two")])

    def look() -> str:
        return "ok"

    with Policy().session("x") as session:
        chained(server, session)
        chained(server, session, tools=[look], previous_response_id="resp_0", messages="and now?")
    assert [body.get("previous_response_id") for body in server.requests] == [None, "resp_0", "resp_1"]
    assert [len(body["input"]) for body in server.requests] == [1, 1, 1]


@pytest.mark.parametrize(
    ("finish", "said"), [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop")]
)
def test_how_a_response_ended_is_said_in_one_wire_s_words(finish: str, said: str) -> None:
    assert read(Text("thr", finish_reason=finish)).turn(0).finish_reason == said
    assert read(Calls(call("x"))).turn(0).finish_reason == "tool_calls"


def test_a_call_cut_before_its_arguments_does_not_pass_for_one_without() -> None:
    cut = read(Calls(call("a", ""), call("b", ""), finish_reason="length")).turn(0)
    assert [c.arguments for c in cut.calls] == ["", "{"]


def test_d1_text_blocks_are_joined() -> None:
    said: list[Any] = [{"type": "output_text", "text": text, "annotations": []} for text in ("I found ", "two")]
    message = {"type": "message", "role": "assistant", "content": said}
    response = Response()
    response.read(
        {"status": "completed", "output": [message, {**message, "content": [{**said[0], "text": " errors"}]}]}
    )
    assert response.turn(0).text == "I found two errors"


def test_a_refusal_is_what_the_model_says() -> None:
    response = read(Text(refusal="I cannot"))
    assert response.turn(0).text == "I cannot"
    assert response.messages()[0]["content"] == [{"type": "refusal", "refusal": "I cannot"}]


def test_a_custom_tool_gets_its_input_and_its_own_kind_of_output() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "sql", "input": "select 1"}
    response = Response()
    response.read({"id": "r", "status": "completed", "output": [item]})
    [requested] = response.turn(0).calls
    assert requested == RequestedCall("a", "sql", {"input": "select 1"}, "custom")
    assert Responses().result(requested, "ok\x07") == {
        "type": "custom_tool_call_output",
        "call_id": "a",
        "output": "ok",
    }


def test_a_call_without_an_id_gets_one_that_goes_back_with_it() -> None:
    calls = [{"type": "function_call", "name": "a", "arguments": "{}", "call_id": id_} for id_ in ("", None)]
    response = Response()
    response.read({"status": "completed", "output": calls})
    assert [c.id for c in response.turn(7).calls] == ["call_7_0", "call_7_1"]
    assert [item["call_id"] for item in response.messages()] == ["call_7_0", "call_7_1"]


def test_what_the_client_adds_does_not_go_back() -> None:
    item = {"type": "function_call", "id": None, "call_id": "a", "name": "x", "arguments": "{}"}
    response = Response()
    response.read({"status": "completed", "output": [{**item, "parsed_arguments": {}, "created_by": "me"}]})
    assert response.messages() == [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}]


@pytest.mark.parametrize("text", ["", " \n"])
def test_reasoning_alone_is_not_kept_since_the_api_would_not_take_it(text: str) -> None:
    assert read(Text(text, items=(reasoning("hm"),))).messages() == []
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert len(read(Text(text, items=(reasoning("hm"), search))).messages()) >= 2


def test_a_stream_whose_last_event_has_no_output_is_read_from_its_items() -> None:
    response = Response()
    for event in events(Calls(call("grep", {"pattern": "error"}, id="a"), text="hm")):
        if event.type == "response.output_item.done" and event.item.type == "function_call":
            event.item.arguments = ""
        if event.type == "response.completed":
            event.response.output = []
        response.add(event)
    assert response.turn(0).calls == (RequestedCall("a", "grep", '{"pattern": "error"}'),)
    assert response.turn(0).text == "hm"


def test_a_response_that_failed_is_raised_and_adds_nothing(way: Any, serve: Any) -> None:
    if way.chat:
        return
    server = serve([Calls(call("look", {})), Failed("out of order", "server_error"), Text("done")])
    messages = [way.user()]

    def look() -> str:
        return "ok"

    with Policy().session("failed") as session:
        with pytest.raises(ResponseFailed, match=r"^server_error: out of order$") as raised:
            way(server, session, messages=messages, tools=[look])
        assert (raised.value.code, len(messages), session.unpriced) == ("server_error", 3, 2)
        assert way(server, session, messages=messages, tools=[look]).answer == "done"


def test_a_stream_that_ends_early_and_an_error_event_are_failures() -> None:
    response = Response()
    for event in events(Calls(call("x")))[:-1]:
        response.add(event)
    with pytest.raises(ResponseFailed, match="ended before its response was complete"):
        response.turn(0)
    with pytest.raises(ResponseFailed, match=r"^rate_limit: slow down$"):
        response.add({"type": "error", "code": "rate_limit", "message": "slow down"})


def test_d9_control_characters_of_a_model_do_not_enter_the_conversation(serve: Any, some: Any) -> None:
    script: list[Reply] = [Text("bell\x07, a tab\t stays")]
    with Policy().session("d9") as session:
        result = some(serve(script), session)
    assert result.answer == "bell, a tab\t stays"
    assert "\\u0007" not in json.dumps(result.messages)
