"""
What a request carries after a compaction, and what the session's digest is good for.
"""

import asyncio
import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Policy
from guardrails.integrations.openai import Responses
from guardrails.integrations.openai.chat_completions import ChatCompletions
from guardrails.integrations.openai.context import PUT_BACK, Context
from guardrails.session.turns.loop import RequestedCall
from guardrails.testing.scripted_openai import Calls, Reply, Text, call, obeying


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


def test_a8_without_the_digest_the_same_model_repeats_until_something_stops_it(way: Any, serve: Any) -> None:
    ran: list[str] = []

    def look(path: str) -> str:
        ran.append(path)
        return search(path)

    look.__name__ = "search"
    with Policy([Budget(max_calls=12)]).session("cut") as session:
        result = way(serve(obeying(forgetful, "stopped")), session, tools=[look], compact=last_two, digest=False)
    assert (len(ran), result.ended) == (12, "forced")
    assert set(ran) == {"a.c", "b.c"}


def test_a_compaction_that_changes_nothing_sends_the_conversation_as_it_is(some: Any, serve: Any) -> None:
    server = serve(forgetful)
    with Policy().session("same") as session:
        result = some(server, session, tools=[search], compact=list)
    assert some.sent(server.requests[-1]) == result.messages[:-1]


def test_chained_a_compaction_starts_afresh(chained: Any, serve: Any) -> None:
    cuts = iter([False, False, True, False, False])
    server = serve(forgetful_of_the_chain)
    with Policy().session("cut") as session:
        chained(server, session, tools=[search], compact=lambda messages: messages[-2:] if next(cuts) else messages)
    assert [body.get("previous_response_id") for body in server.requests] == [None, "resp_0", None, "resp_2", "resp_3"]
    assert [len(body["input"]) for body in server.requests] == [1, 1, 3, 1, 1]


def forgetful_of_the_chain(body: Any, n: int) -> Reply:
    return Calls(call("search", {"path": FILES[n]})) if n < 4 else Text("done")


def test_a_compaction_may_be_asynchronous_in_the_asynchronous_loop(serve: Any, all_ways: Any) -> None:
    async def compact(messages: list[Any]) -> list[Any]:
        await asyncio.sleep(0)
        return messages[-2:]

    for way in all_ways:
        if way.asynchronous:
            with Policy().session("cut") as session:
                assert way(serve(forgetful_of_the_chain), session, tools=[search], compact=compact).answer == "done"


def test_what_a_compaction_raises_is_raised_before_anything_is_sent(some: Any, serve: Any) -> None:
    def compact(messages: list[Any]) -> list[Any]:
        raise ValueError("no room")

    server = serve([])
    with Policy().session("cut") as session, pytest.raises(ValueError, match="no room"):
        some(server, session, compact=compact)
    assert server.requests == []


# Calls and their results stay together

WIRES: list[Any] = [ChatCompletions(), Responses()]


def turn(wire: Any, *ids: str) -> list[Any]:
    calls = [RequestedCall(id_, "look", "{}") for id_ in ids]
    if isinstance(wire, Responses):
        said: list[Any] = [{"type": "function_call", "call_id": i, "name": "look", "arguments": "{}"} for i in ids]
    else:
        made = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
        said = [{"role": "assistant", "tool_calls": made}]
    return [*said, *(wire.result(requested, "ok") for requested in calls)]


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_that_a_killed_process_left_is_answered_as_broken_off(wire: Any) -> None:
    said = [{"role": "user", "content": "go"}, *turn(wire, "a", "b")]
    messages = [*said[:-1]]
    context = Context(wire, messages)
    assert context.whole is messages
    assert messages[:-1] == said[:-1]
    mended = messages[-1]
    assert wire.answers(mended) == "b"
    assert json.loads(mended.get("content") or mended["output"])["error_type"] == "cancelled"
    again = list(messages)
    assert Context(wire, again).whole == messages


def valid(wire: Any, messages: list[Any]) -> bool:
    """
    Whether the API would take them, as the scripted server judges it.
    """
    from guardrails.testing import chat_completions, responses

    if isinstance(wire, Responses):
        return responses.problem({"model": "m", "input": messages}, {}) is None
    return chat_completions.problem({"model": "m", "messages": messages}, {}) is None


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_whatever_a_compaction_keeps_the_api_takes(wire: Any, data: st.DataObject) -> None:
    messages: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]
    for ids in data.draw(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=4)):
        messages += turn(wire, *ids)
        messages.append({"role": "user", "content": "on"})
    context = Context(wire, messages)
    assert valid(wire, messages)
    kept = [message for message in context.used() if data.draw(st.booleans())]
    context.compacted(kept, lambda: "the digest")
    sent = list(context.next().messages)
    if sent:
        assert valid(wire, sent)
    if len(kept) < len(messages):
        [at] = [i for i, m in enumerate(sent) if m.get("content") == PUT_BACK + "the digest"]
        assert at == (1 if sent[0].get("role") == "system" else 0)
