"""
Sessions that reserve from another.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import (
    Budget,
    Envelope,
    MemorySink,
    MemoryStore,
    Policy,
    SessionError,
    SessionState,
    Success,
)
from guardrails.stores.sqlite import SqliteStore
from tests.replaying import replay
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def held(limit: str, amount: int) -> Any:
    return {limit: amount}


def make(clock: Any, *guards: Any) -> Any:
    return Policy(guards).session("s", clock=clock)


def calls(session: Any, count: int, execute: Any = ok) -> list[Envelope]:
    return [session.call("t", {"n": number}, execute) for number in range(count)]


def test_a_child_reserves_from_its_parent_and_gives_back_what_it_did_not_use(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=10, max_cost_usd=1))
    with parent.child("c", max_calls=4, max_cost_usd=0.4) as child:
        assert parent.ledger.progress == {"calls_used": 0, "calls_left": 6, "cost_left_usd": 0.6}
        calls(child, 3, lambda *_: Success("ok", cost_usd=0.1))
        assert child.ledger.progress == {"calls_used": 3, "calls_left": 1, "cost_left_usd": 0.1}
    assert parent.ledger.progress == {"calls_used": 3, "calls_left": 7, "cost_left_usd": 0.7}


def test_a_child_gets_all_that_is_left_of_what_is_not_named(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=10, max_tokens=1_000))
    calls(parent, 2, lambda *_: Success("ok", tokens=100))
    child = parent.child("c", max_calls=1)
    assert child.ledger.progress == {"calls_used": 0, "calls_left": 1, "tokens_left": 800}
    # What it has used so far is only a guess, and so it may run; what is said to take more than is left does not.
    assert parent.call("t", {"n": "x"}, ok).ok


def test_children_that_run_at_once_each_have_a_share_of_what_is_left(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=10, max_tokens=101, max_elapsed=60))
    one = parent.child("a", share=0.5)
    two = parent.child("b", share=0.5)
    assert one.ledger.progress == {"calls_used": 0, "calls_left": 5, "tokens_left": 51, "seconds_left": 60}
    assert two.ledger.progress == {"calls_used": 0, "calls_left": 3, "tokens_left": 25, "seconds_left": 60}
    assert parent.call("t", {}, ok).ok
    one.close()
    assert parent.ledger.progress["calls_left"] == 6


@table("share", [0, -1, 1.5, float("nan")])
def test_a_share_is_a_part_of_the_whole(share: float, clock: Any) -> None:
    with pytest.raises(SessionError, match="`share` is above 0 and at most 1"):
        make(clock, Budget(max_calls=1)).child("a", share=share)


@table(("limit", "code"), [("max_calls", "budget.max_calls"), ("max_turns", "budget.max_turns")])
def test_nothing_is_spent_twice_by_a_parent_and_its_children(limit: str, code: str, clock: Any) -> None:
    parent = make(clock, Budget(**held(limit, 5)))
    children = [parent.child("a", **held(limit, 2)), parent.child("b", **held(limit, 2))]
    refused = set()

    def use(session: Any) -> int:
        admitted = 0
        for number in range(4):
            session.begin_turn()
            envelope = session.call("t", {"n": number}, ok)
            admitted += envelope.ok
            refused.add(envelope.code)
        return admitted

    assert [use(session) for session in (children[0], parent, children[1])] == [2, 1, 2]
    assert refused == {None, code}
    for child in children:
        child.close()
    assert parent.exhausted == code


def test_a_parent_whose_children_hold_all_waits_for_them(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=3))
    child = parent.child("c")
    envelope = parent.call("t", {}, ok)
    assert (envelope.code, parent.exhausted) == ("budget.max_calls", None)
    assert "held for sub-agents" in (envelope.limit_message or "")
    child.close()
    assert parent.call("t", {}, ok).ok


def test_a_child_cannot_ask_for_more_than_is_left_nor_of_an_exhausted_parent(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=3, max_cost_usd=0.5))
    with pytest.raises(SessionError, match="asks for max_calls 4, 3 is left"):
        parent.child("c", max_calls=4)
    with pytest.raises(SessionError, match=r"asks for max_cost_usd \$0.60, \$0.50 is left"):
        parent.child("c", max_cost_usd=0.6)
    assert parent.ledger.progress["calls_left"] == 3
    calls(parent, 3)
    with pytest.raises(SessionError, match="exhausted"):
        parent.child("c")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_sub_agents_beyond_their_number_or_depth_make_no_call(clock: Any, kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "states.db")
    policy, sink = Policy([Budget(max_calls=99, max_children=3, max_depth=2)]), MemorySink()
    parent = policy.session("s", store=store, clock=clock, records=sink)
    first = parent.child("a", share=0.5)
    second = first.child("b", share=0.5)
    deep = second.child("c", share=0.5)
    refused = deep.call("t", {}, ok)
    assert (refused.code, deep.exhausted, deep.tool_choice()) == ("budget.max_depth", "budget.max_depth", "none")
    first.close()
    assert parent.child("d", share=0.1).call("t", {}, ok).ok
    many = parent.child("e", share=0.1)
    assert many.call("t", {}, ok).code == many.exhausted == "budget.max_children"
    assert many.call("t", {}, ok).limit_message == "Sub-agent limit reached (3). Stopping tool loop."
    # One that is taken up again, perhaps in another process, is refused as before.
    assert parent.child("e", share=0.1, again=True).call("t", {"n": 1}, ok).code == "budget.max_children"
    many.close()
    assert parent.call("t", {"n": 2}, ok).ok
    assert all(one.same for one in replay(policy.chain, sink.records))


def test_a_closed_child_runs_nothing_more_however_it_is_asked(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=5))
    child = parent.child("c", max_calls=3)
    calls(child, 1)
    child.close()
    child.close()
    assert child.call("t", {"n": 9}, ok).code == "session.closed"
    with pytest.raises(SessionError, match="closed"):
        child.extend(max_calls=5)
    with pytest.raises(SessionError, match="another name"):
        parent.child("c")
    assert parent.ledger.progress == {"calls_used": 1, "calls_left": 4}


@table("part", [{"max_calls": 2}, {"share": 0.5}, {"share": 0.2}])
def test_a_child_and_its_parent_replay_from_their_records(part: Any, clock: Any) -> None:
    sink, store = MemorySink(), MemoryStore()
    policy = Policy([Budget(max_calls=5, max_elapsed=60)])
    parent = policy.session("s", store=store, records=sink, clock=clock)
    child = parent.child("c", **part)
    clock.advance(7)
    calls(child, 3)
    child.close()
    for session in (parent, child):
        again = SessionState()
        records = [record for record in sink.records if record["session_id"] == session.id]
        assert all(replayed.same for replayed in replay(session.ledger.chain, records, again))
        assert again == store.update([session.id], lambda states: states[0])


USED = {"max_calls": 3, "max_turns": 2, "max_cost": 300_000, "max_tokens": 70}


def used(state: SessionState, *_: Any) -> dict[str, int]:
    return {"max_calls": state.calls, "max_turns": state.turns, "max_cost": state.cost, "max_tokens": state.tokens}


def spend(session: Any) -> None:
    """
    Three calls in two turns, $0.30 and 70 tokens.
    """
    for turn, count in enumerate((2, 1)):
        session.begin_turn(count)
        for number in range(count):
            session.call("t", {"n": (turn, number)}, lambda *_: Success("ok", cost_usd=0.1, tokens=20))
    session.charge(model="m", usage={"prompt_tokens": 10}, cost_usd=0)


def test_what_closed_children_used_is_charged_to_their_parent_for_each_limit(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=20, max_turns=20, max_cost_usd=2, max_tokens=1_000))
    spend(parent)
    assert parent.ledger.read(used) == USED
    for times, name in enumerate("ab", 2):
        with parent.child(name, max_calls=9) as child:
            spend(child)
            assert child.ledger.read(used) == USED
        assert parent.ledger.read(used) == {limit: times * amount for limit, amount in USED.items()}
    assert parent.ledger.progress == {
        "calls_used": 9,
        "calls_left": 11,
        "turns_left": 14,
        "cost_left_usd": 1.1,
        "tokens_left": 790,
    }


@table("used", [0, 1])
def test_a_child_that_runs_is_taken_up_as_it_is(used: int, clock: Any) -> None:
    sink = MemorySink()
    parent = Policy([Budget(max_calls=8)]).session("s", clock=clock, records=sink)
    calls(parent.child("c", max_calls=4), used)
    events = len(sink.records)
    child = parent.child("c", max_calls=4, again=True)
    assert len(sink.records) == events
    assert child.ledger.progress == {"calls_used": used, "calls_left": 4 - used}


@table("make_store", [MemoryStore, lambda: MemoryStore(live=1)])
def test_a_session_that_is_forgotten_leaves_nothing_of_its_closed_children(make_store: Any, clock: Any) -> None:
    store = make_store()
    policy = Policy([Budget(max_calls=9)])
    for number in range(3):
        with policy.session(f"s{number}", clock=clock, store=store) as session:
            with session.child("c", max_calls=4) as child, child.child("g", max_calls=2) as grandchild:
                calls(grandchild, 1)
            calls(session, 1)
        session.ledger.forget()
    assert len(store) == 0
    again = policy.session("s0", clock=clock, store=store)
    assert calls(again.child("c", max_calls=4), 1)[0].ok
