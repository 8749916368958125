"""
The Responses wire of the scripted server, seen through the real openai client.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from openai import BadRequestError, DefaultHttpxClient, OpenAI

from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, Usage, call, obeying, reasoning
from tests.tables import table


pytestmark = pytest.mark.system


GREP = {"type": "function", "name": "grep", "strict": False, "parameters": {"type": "object", "properties": {}}}
CALL = {"type": "function_call", "call_id": "c1", "name": "grep", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}


def connect(server: ScriptedOpenAI) -> OpenAI:
    http = DefaultHttpxClient(verify=False)
    return OpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http)


@pytest.fixture
def ask() -> Iterator[Any]:
    """
    One request to a server that says *reply*; both are closed at the end.
    """
    open_now: list[Any] = []

    def asking(reply: Any, given: Any = "go", **options: Any) -> Any:
        server = ScriptedOpenAI(reply if isinstance(reply, list) else [reply]).__enter__()
        client = connect(server)
        open_now.extend((client, server))
        return client.responses.create(model="m", input=given, **options)

    yield asking
    for opened in open_now:
        opened.__exit__(None, None, None)


def test_calls_come_with_their_ids_arguments_and_usage(ask: Any) -> None:
    reply = Calls(call("grep", {"q": "é"}, id="c1"), call("ls"), text="Let me look.", usage=Usage(10, 2, cached=4))
    response = ask(reply, tools=[GREP])
    said, first, second = response.output
    assert (response.status, response.output_text, said.content[0].text) == ("completed", *["Let me look."] * 2)
    assert (first.call_id, first.name, first.arguments) == ("c1", "grep", '{"q": "é"}')
    assert second.call_id == "call_0_1"
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (10, 2, 12)
    assert response.usage.input_tokens_details.cached_tokens == 4


@table(
    "reply",
    [
        Text("a long answer that takes several events"),
        Text(refusal="I cannot help with that"),
        Calls(call("grep", {"pattern": "error in main"}), call("ls"), text="Let me look."),
        Text("done", items=(reasoning("hm"),)),
        Text("cut", finish_reason="length"),
    ],
)
def test_a_stream_ends_with_the_response_that_comes_whole(ask: Any, reply: Any) -> None:
    whole = ask(reply)
    events = list(ask(reply, stream=True))
    assert events[-1].response.to_dict() == whole.to_dict()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    texts = [e.delta for e in events if e.type in ("response.output_text.delta", "response.refusal.delta")]
    assert "".join(texts) == (reply.text or getattr(reply, "refusal", "") or "")
    arguments = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
    assert "".join(arguments) == "".join(c.arguments for c in getattr(reply, "calls", ()))


@table(
    ("given", "options", "said"),
    [
        ([], {}, "minimum length 1"),
        ([{"role": "pirate", "content": "x"}], {}, "Invalid value: 'pirate'"),
        ([{"role": "user"}], {}, "content"),
        ([CALL], {}, "did not have response messages: c1"),
        ([OUTPUT], {}, "no response to a preceding call"),
        ([CALL, OUTPUT, OUTPUT], {}, "no response to a preceding call"),
        ([{**CALL, "call_id": ""}, {**OUTPUT, "call_id": ""}], {}, "call_id"),
        ([{**CALL, "arguments": None}, OUTPUT], {}, "arguments"),
        ([CALL, {**OUTPUT, "output": {}}], {}, "output"),
        ([{"role": "user", "content": "go"}, reasoning("hm")], {}, "without its required following item"),
        ([reasoning("hm"), {"role": "user", "content": "go"}], {}, "without its required following item"),
        ([{**reasoning("hm"), "encrypted_content": None}, CALL, OUTPUT], {"store": False}, "not persisted"),
        ("go", {"tools": [{"type": "function", "function": {"name": "grep"}}]}, r"tools\[0\]"),
        ("go", {"tools": [{**GREP, "strict": True}]}, "all fields must be required"),
        ("go", {"tool_choice": "required"}, "tool_choice"),
        ("go", {"tools": [GREP], "tool_choice": {"type": "function", "name": "ls"}}, "'ls' not found"),
        (
            "go",
            {"tools": [GREP], "tool_choice": {"type": "function", "function": {"name": "grep"}}},
            "tool_choice",
        ),
        ("go", {"previous_response_id": "resp_9"}, "'resp_9' not found"),
    ],
)
def test_what_the_api_refuses_is_refused(ask: Any, given: Any, options: Any, said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        ask(Text("never"), given, **options)


@table(
    ("given", "options"),
    [
        ([{"role": "user", "content": "go"}, reasoning("hm"), CALL, OUTPUT], {"store": False}),
        ([CALL, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}, OUTPUT], {}),
        ("go", {"tools": [GREP], "tool_choice": {"type": "function", "name": "grep"}}),
        (
            "go",
            {
                "tools": [GREP, {"type": "web_search"}],
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [{"type": "function", "name": "grep"}],
                },
            },
        ),
    ],
)
def test_what_the_api_takes_is_taken(ask: Any, given: Any, options: Any) -> None:
    assert ask(Text("done"), given, **options).output_text == "done"


def test_a_stored_response_is_gone_on_from_and_one_that_is_not_stored_is_unknown() -> None:
    replies: list[Reply] = [Calls(call("grep", id="c1")), Text("done"), Text("unstored")]
    with (
        ScriptedOpenAI(obeying(replies, "none")) as server,
        connect(server) as client,
    ):
        tools: Any = [GREP]
        output: Any = [OUTPUT]
        first = client.responses.create(model="m", input="go", tools=tools)
        second = client.responses.create(model="m", input=output, tools=tools, previous_response_id=first.id)
        assert second.output_text == "done"
        third = client.responses.create(model="m", input="go", tools=tools, store=False)
        with pytest.raises(BadRequestError, match="not found"):
            client.responses.create(model="m", input="go", previous_response_id=third.id)
