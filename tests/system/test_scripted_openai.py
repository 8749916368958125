"""
The scripted server, seen through the real openai client.
"""

from collections.abc import Callable
from typing import Any

import pytest

from openai import APIConnectionError, BadRequestError, DefaultHttpxClient, NotFoundError, OpenAI

from guardrails.testing.scripted_openai import Calls, Fail, Raw, Reply, Script, ScriptedOpenAI, Text, Usage, call
from tests.openai_api import reasoning
from tests.tables import table


USER = {"role": "user", "content": "go"}


def connect(server: ScriptedOpenAI, **options: Any) -> OpenAI:
    return OpenAI(base_url=server.base_url, api_key="-", **{"max_retries": 0} | options)


def ask(client: OpenAI, **options: Any) -> Any:
    return client.chat.completions.create(model="gpt-5-mini", **{"messages": [USER]} | options)


def respond(client: OpenAI, **options: Any) -> Any:
    return client.responses.create(model="m", input="go", **options)


def answers(script: Reply | Script, asked: Callable[[OpenAI], Any]) -> Any:
    with ScriptedOpenAI(script if callable(script) else [script]) as server, connect(server) as client:
        return asked(client)


def test_a_list_is_played_in_order_and_a_request_beyond_it_fails_without_a_retry() -> None:
    first_reply = Calls(call("grep", {"q": "é"}, id="c1"))
    tools = [{"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}]
    with ScriptedOpenAI([first_reply, Text("done")]) as server, connect(server, max_retries=2) as client:
        first, second = ask(client, tools=tools).choices[0], ask(client).choices[0]
        with pytest.raises(BadRequestError, match="only 2 replies"):
            ask(client)
        with pytest.raises(NotFoundError):
            client.embeddings.create(model="m", input="x")
    [wire] = first.message.tool_calls
    assert (wire.id, wire.function.name, wire.function.arguments) == ("c1", "grep", '{"q": "é"}')
    assert (first.finish_reason, second.finish_reason, second.message.content) == ("tool_calls", "stop", "done")
    assert [body.get("tools") for body in server.requests] == [tools, None, None]


def test_a_streamed_call_names_itself_once_and_sends_its_arguments_in_pieces() -> None:
    made = (call("grep", {"pattern": "error", "path": "src/main.c"}, id="a"), call("ls", id="b"))
    reply = Calls(*made, text="let me look", usage=Usage(100, 20, 64))
    usage: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = answers(reply, lambda client: list(ask(client, **usage)))
    deltas = [piece for c in chunks for piece in c.choices[0].delta.tool_calls or []]
    assert [(d.index, d.id, d.function.name) for d in deltas if d.id or d.function.name] == [
        (0, "a", "grep"),
        (1, "b", "ls"),
    ]
    first = [d.function.arguments for d in deltas if d.index == 0]
    assert (first[0], len(first) > 3, "".join(first)) == ("", True, made[0].arguments)
    said = "".join(c.choices[0].delta.content or "" for c in chunks), chunks[-1].choices[0].finish_reason
    assert said == ("let me look", "tool_calls")
    # The usage comes by itself, and only if it is asked for.
    used = last.usage
    assert (last.choices, {c.usage for c in chunks}) == ([], {None})
    assert (used.prompt_tokens, used.completion_tokens, used.prompt_tokens_details.cached_tokens) == (100, 20, 64)
    assert {c.usage for c in answers(reply, lambda client: list(ask(client, stream=True)))} == {None}


@table(
    "reply",
    [
        Text("a long answer that takes several events", usage=Usage(10, 2)),
        Text(refusal="I cannot help with that", usage=Usage(10, 2)),
        Calls(call("grep", {"pattern": "error in main"}), call("ls"), text="Let me look.", usage=Usage(10, 2)),
        Text("done", items=(reasoning("hm"),), usage=Usage(10, 2)),
    ],
)
def test_a_stream_of_responses_ends_with_the_response_that_comes_whole(reply: Text) -> None:
    whole, events = answers(reply, respond), answers(reply, lambda client: [*respond(client, stream=True)])
    assert (whole.output_text, whole.usage.input_tokens) == (reply.text or "", 10)
    assert [item.name for item in whole.output if item.type == "function_call"] == [made.name for made in reply.calls]
    assert events[-1].response.to_dict() == whole.to_dict()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    texts = [e.delta for e in events if e.type in ("response.output_text.delta", "response.refusal.delta")]
    assert "".join(texts) == (reply.text or reply.refusal or "")
    arguments = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
    assert "".join(arguments) == "".join(made.arguments for made in reply.calls)


@table("by_transport", [False, True])
def test_a_client_asks_by_a_socket_or_without_one_and_retries_as_told(by_transport: bool) -> None:
    busy = Fail(429, {"retry-after-ms": "1"})
    broken = Raw('data: {"choices": []}\n\n', "text/event-stream", broken=True)
    with ScriptedOpenAI([busy, Text("hello"), Text("streamed"), broken]) as server:
        http = DefaultHttpxClient(transport=server.transport) if by_transport else DefaultHttpxClient()
        url = "http://nowhere/v1" if by_transport else server.base_url
        with OpenAI(base_url=url, api_key="-", max_retries=1, http_client=http) as client:
            assert ask(client).choices[0].message.content == "hello"
            assert "".join(c.choices[0].delta.content or "" for c in ask(client, stream=True)) == "streamed"
            with pytest.raises(APIConnectionError):
                list(ask(client, stream=True))
    assert len(server.requests) == 4
