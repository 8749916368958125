"""
What a request carries after a compaction, and what the session's digest is good for.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy
from guardrails.integrations.openai.wires import PUT_BACK, ChatCompletions, RequestedCall, Responses, compacted, mend
from guardrails.testing.scripted_openai import Calls, Reply, Text, call
from tests.openai_api import problems
from tests.tables import table


FILES = ["a.c", "b.c", "c.c", "d.c"]


def search(path: str) -> str:
    return f"nothing in {path}"


def forgetful(body: Any, n: int) -> Reply:
    """
    A model that searches each file whose search its context does not show, and then answers.
    """
    shown = json.dumps(body.get("messages") or body["input"])
    todo = [path for path in FILES if f"nothing in {path}" not in shown]
    return Calls(call("search", {"path": todo[0]})) if todo else Text("nothing anywhere")


def last_two(messages: list[Any]) -> list[Any]:
    return messages[-2:]


@pytest.mark.system
def test_a8_the_digest_keeps_a_model_with_a_cut_history_from_repeating(way: Any, serve: Any) -> None:
    ran: list[str] = []

    def look(path: str) -> str:
        ran.append(path)
        return search(path)

    look.__name__ = "search"
    messages = [{"role": "system", "content": "be brief"}, way.user()]
    server = serve(forgetful)
    with Policy().session("cut") as session:
        result = way(server, session, messages=messages, tools=[look], compact=last_two)
    assert (ran, result.answer, result.ended) == (FILES, "nothing anywhere", "answered")
    assert [len(way.sent(body)) for body in server.requests] == [2, 3, 3, 3, 3]
    digests = [
        item["content"] for item in way.sent(server.requests[-1]) if str(item.get("content", "")).startswith(PUT_BACK)
    ]
    assert len(digests) == 1
    assert "4 tool calls were made" in digests[0]
    # The whole conversation is kept, without digests.
    assert PUT_BACK not in json.dumps(messages)
    assert len(way.outputs(messages)) == 4


# Calls and their results stay together

WIRES: list[Any] = [ChatCompletions, Responses]


def turn(wire: Any, *ids: str) -> list[Any]:
    calls = [RequestedCall(id_, "look", "{}") for id_ in ids]
    if wire is Responses:
        said: list[Any] = [{"type": "function_call", "call_id": i, "name": "look", "arguments": "{}"} for i in ids]
    else:
        made = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
        said = [{"role": "assistant", "tool_calls": made}]
    return [*said, *(wire.result(requested, "ok") for requested in calls)]


@table("wire", WIRES)
def test_a_call_that_a_killed_process_left_is_answered_as_broken_off(wire: Any) -> None:
    said = [{"role": "user", "content": "go"}, *turn(wire, "a", "b")]
    messages = [*said[:-1]]
    mend(wire, messages)
    assert messages[:-1] == said[:-1]
    mended = messages[-1]
    assert wire.answers(mended) == "b"
    assert json.loads(mended.get("content") or mended["output"])["error_type"] == "cancelled"
    again = list(messages)
    mend(wire, again)
    assert again == messages


def valid(wire: Any, messages: list[Any]) -> bool:
    """
    Whether the API would take them, as the rules of our tests judge it.
    """
    return not problems([{"model": "m", "input" if wire is Responses else "messages": messages}])


@table("wire", WIRES)
@given(data=st.data())
def test_whatever_a_compaction_keeps_the_api_takes(wire: Any, data: st.DataObject) -> None:
    messages: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]
    for ids in data.draw(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=4)):
        messages += turn(wire, *ids)
        messages.append({"role": "user", "content": "on"})
    assert valid(wire, messages)
    kept = [message for message in messages if data.draw(st.booleans())]
    sent = compacted(wire, messages, kept, lambda: "the digest")
    if sent:
        assert valid(wire, sent)
    if len(kept) < len(messages):
        [at] = [i for i, m in enumerate(sent) if m.get("content") == PUT_BACK + "the digest"]
        assert at == (1 if sent[0].get("role") == "system" else 0)
