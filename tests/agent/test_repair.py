"""
Half-finished turns, answered when a conversation is taken up again (B4).
"""

import json

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, MemorySink, Policy, Tool
from guardrails.agent.conversations import INTERRUPTED, Conversation, Conversations, Repaired
from guardrails.integrations.openai.loop import WIRES
from tests.replaying import replay


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Callable[..., Conversation]]:
    with Conversations(tmp_path / "kept.db") as all_:
        yield lambda messages, wire="chat": all_.start(wire=wire, messages=messages)


def called(*ids: str, wire: str = "chat") -> list[dict[str, Any]]:
    if wire == "chat":
        calls = [{"id": i, "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}} for i in ids]
        return [{"role": "assistant", "tool_calls": calls}]
    return [{"type": "function_call", "call_id": i, "name": "search", "arguments": '{"q": 1}'} for i in ids]


def result(id: str, wire: str = "chat") -> dict[str, Any]:
    if wire == "chat":
        return {"role": "tool", "tool_call_id": id, "content": "found"}
    return {"type": "function_call_output", "call_id": id, "output": "found"}


def text(answer: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(answer.get("content") or answer.get("output") or "")
    return said


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_b4_each_unanswered_call_is_told_that_it_may_or_may_not_have_run(wire: str, kept: Any) -> None:
    messages = kept([{"role": "user", "content": "go"}, *called("a", "b", "c", wire=wire), result("b", wire)], wire)
    session = Policy([Budget(max_calls=9)]).session("s")
    assert messages.repair(session) == [Repaired("a", "search", False), Repaired("c", "search", False)]
    first, second = messages[-2:]
    assert [WIRES[wire].answers(message) for message in (first, second)] == ["a", "c"]
    assert text(first)["status"] == "error"
    assert text(first)["error_type"] == "cancelled"
    assert "may or may not have run" in text(first)["error_message"]
    assert "before you call it again" in text(first)["next_action_hint"]
    assert not text(first).get("retryable")
    assert messages.repair(session) == []
    assert session.ledger.progress["calls_used"] == 0


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "go"}],
        [*called("a"), result("a")],
        # Ids that a server uses again.
        [*called("a"), result("a"), *called("a"), result("a")],
        [*called("a", "a"), result("a"), result("a")],
    ],
)
def test_a_finished_turn_is_left_as_it_is(messages: list[dict[str, Any]], kept: Any) -> None:
    chat = kept(messages)
    assert chat.repair(Policy().session("s")) == []
    assert chat == messages


def test_an_admission_that_was_left_open_is_settled_once_and_replays(clock: Any, kept: Any) -> None:
    policy = Policy([Budget(max_calls=5), Duplicates()])
    records = MemorySink()
    session = policy.session("s", records=records, clock=clock)
    session.begin_turn(calls=1)
    # What a killed process leaves: decided and claimed, never completed.
    left, _ = session.calls.decide("search", '{"q": 1}', "a", lambda *_: None)
    assert left.allowed
    assert session.decide("search", '{"q": 1}', id="b").code == "call.in_flight"

    messages = kept(called("a"))
    assert messages.repair(session) == [Repaired("a", "search", True)]
    assert text(messages[-1])["error_message"] == INTERRUPTED
    # The model may find it worth another try: it is no duplicate, but it is another call.
    assert session.call("search", '{"q": 1}', lambda *_: "found", id="c").ok
    assert session.ledger.progress["calls_used"] == 2
    session.close()
    decided = list(replay(policy.chain, records.records))
    assert [replayed.same for replayed in decided] == [True] * 3


def test_a_call_that_is_not_to_be_made_twice_is_uncertain_after_a_kill(clock: Any, kept: Any) -> None:
    session = Policy(tools=[Tool(name="search", idempotent=False)]).session("s", clock=clock)
    session.calls.decide("search", '{"q": 1}', "a", lambda *_: None)
    assert kept(called("a")).repair(session) == [Repaired("a", "search", True)]
    assert session.call("search", '{"q": 1}', lambda *_: "ran twice", id="b").code == "call.uncertain"
    [waiting] = session.pending()
    session.approve(waiting)
    assert session.call("search", '{"q": 1}', lambda *_: "ran", id="c").ok


def test_what_sub_agents_held_when_they_were_killed_comes_back_but_for_what_they_used(kept: Any) -> None:
    session = Policy([Budget(max_calls=20)], tools=[Tool(name="pay", cost_usd=0.1)]).session("s")
    child = session.child("agent-1", max_calls=10)
    grandchild = child.child("agent-1", max_calls=5)
    assert child.call("search", {}, lambda *_: 1).ok
    assert grandchild.call("search", {}, lambda *_: 1).ok
    grandchild.calls.decide("search", {"open": True}, "x", lambda *_: None)
    assert session.ledger.progress == {"calls_used": 0, "calls_left": 10}
    # None of them is closed: the process is gone.
    assert kept([]).repair(session) == []
    assert session.ledger.progress == {"calls_used": 3, "calls_left": 17}
    assert kept([]).repair(session) == []
    assert session.ledger.progress == {"calls_used": 3, "calls_left": 17}
