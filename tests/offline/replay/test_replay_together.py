"""
Deciding again what sessions did that share something.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Duplicates,
    Growth,
    MemorySink,
    MemoryStore,
    Policy,
    Rate,
    Rule,
    SessionError,
    Success,
    Tool,
)
from guardrails.offline.replay.exact import Replayed
from guardrails.session.session import Session
from tests.replaying import replay


NOW = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def ok(*_: Any) -> str:
    return "ok"


def lines(sink: MemorySink) -> list[Any]:
    return [line() if callable(line) else line for line in sink.records]


def again(policy: Policy, records: list[Any]) -> list[Replayed]:
    found = list(replay(policy.chain, records, scopes=policy.scopes))
    assert len(found) == sum(record["event"] == "call" for record in records)
    return found


def test_two_sessions_of_one_user_are_decided_again_from_the_records_of_both(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=3)]}), MemorySink()
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, records=sink, clock=clock) for n in range(2)]
    for n in range(3):
        for session in sessions:
            session.call("t", {"n": n}, ok)
    records = lines(sink)
    replayed = again(policy, list(reversed(records)))
    assert [one.made["code"] for one in replayed] == [None, None, None] + ["user.budget.max_calls"] * 3
    assert all(one.same for one in replayed)
    # The records of one alone do not say what the other used.
    alone = [record for record in records if record["session_id"] == "s1"]
    with pytest.raises(
        SessionError, match="the scope `user` of `u1` have a gap before event 3: those of all its sessions"
    ):
        again(policy, alone)


def test_a_scope_that_the_policy_does_not_have_is_named(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy(scopes={"user": [Budget(max_calls=3)]})
    policy.session("s", scopes={"user": "u1"}, records=sink, clock=clock).call("t", {}, ok)
    with pytest.raises(SessionError, match="`s` is in a scope `user`, which the policy does not have"):
        again(Policy(), lines(sink))


def test_charges_requests_extensions_and_late_outcomes_are_lived_through_again(clock: Any) -> None:
    tools = [Tool(name="pay", cost_usd=0.5, timeout=5)]
    scopes = {
        "user": [Budget(max_cost_usd=1.0, max_calls=4), Rate(max_calls_per_second=3), Growth(max_requests_per_second=4)]
    }
    policy, sink = Policy(tools=tools, scopes=scopes), MemorySink()
    one, two = (policy.session(f"s{n}", scopes={"user": "u1"}, records=sink, clock=clock) for n in range(2))
    one.request()
    one.charge(model="m", usage={"prompt_tokens": 5}, cost_usd=0.3)
    late = two.decide("pay", {}, id="a")
    refused = one.call("pay", {}, ok)
    clock.advance(10)
    two.complete(late, "late")
    one.extend(scope="user", max_cost_usd=2)
    one.call("pay", {}, lambda *_: Success("ok", cost_usd=0.1))
    two.decide("pay", {"n": 2}, id="b")
    two.call("pay", {"n": 2}, lambda *_: Success("ok", cost_usd=0.2), id="b")
    for n in range(3):
        two.call("t", {"n": n}, ok)
    for _ in range(6):
        two.request()
    one.extend(scope="user")
    one.call("t", {}, ok)
    replayed = again(policy, lines(sink))
    assert refused.code == "user.budget.max_cost_usd"
    assert all(record.same for record in replayed)
    codes = [record.made["code"] for record in replayed]
    assert {"user.budget.max_cost_usd", "user.budget.max_calls"} <= set(codes)


def test_a_family_is_decided_again_from_the_records_of_all_its_members(clock: Any) -> None:
    rule = Rule(match="pay_*", guards={"budget": {"max_calls": 3}})
    policy, sink = Policy([Budget(max_calls=50), Rate(max_calls_per_second=8)], rules=[rule]), MemorySink()
    parent = policy.session("p", records=sink, clock=clock)
    parent.call("pay_rent", {}, ok)
    with parent.child("a", max_calls=5) as a, parent.child("b", max_calls=5) as b:
        for n in range(3):
            b.call("pay_rent", {"b": n}, ok)
            a.call("pay_rent", {"a": n}, ok)
            parent.call("look", {"n": n}, ok)
        with a.child("deeper", max_calls=1) as deeper:
            deeper.call("look", {}, ok)
    records = lines(sink)
    replayed = again(policy, records)
    assert all(one.same for one in replayed)
    assert {one.made["code"] for one in replayed} == {None, "tools.budget.max_calls"}
    # A child's own records do not say what its family used before.
    alone = [record for record in records if record["session_id"] == "p/a"]
    with pytest.raises(SessionError, match="the records of the family of `p/a` have a gap"):
        again(policy, alone)


def test_what_expires_while_a_child_asks_again_leaves_no_gap_in_its_family(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=50)], tools=[Tool(name="quick", timeout=5)]), MemorySink()
    parent = policy.session("p", records=sink, clock=clock)
    child = parent.child("c", max_calls=5)
    child.decide("quick", {}, id="1")
    child.decide("slow", {}, id="2")
    clock.advance(10)
    child.decide("slow", {}, id="2")
    child.call("slow", {}, ok, id="2")
    assert all(one.same for one in again(policy, lines(sink)))


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["call", "call", "call", "decide", "charge", "request", "extend", "wait", "child", "forget"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


def tell(make: Callable[[int], Session], clock: Clock, steps: list[tuple[int, str, int]]) -> None:
    children: dict[int, Session] = {}
    for who, what, n in steps:
        session = children.get(who) or make(who)
        with suppress(SessionError):
            match what:
                case "call":
                    session.call("pay", {"n": n}, lambda *_, n=n: Success("ok", cost_usd=0.1 * n), id=f"call_{n}")
                case "decide":
                    session.decide("pay", {"n": n}, id=f"call_{n}")
                case "charge":
                    session.charge(model="m", usage={"prompt_tokens": n}, cost_usd=0.1, calls=n)
                case "request":
                    session.request()
                case "extend":
                    session.extend(scope="user", max_calls=n)
                case "wait":
                    clock.now += [0.2, 3.0, 700.0, -40.0][n]
                case "child" if who in children:
                    children.pop(who).close()
                case "child":
                    children[who] = make(who).child(f"kid-{len(children)}-{n}", max_calls=2)
                case "forget" if who not in children:
                    session.ledger.forget()


@settings(max_examples=60)
@given(STEPS)
def test_a_replay_from_the_records_of_all_sessions_is_exact(steps: list[tuple[int, str, int]]) -> None:
    clock, sink, store = Clock(), MemorySink(), MemoryStore()
    rules = [Rule(match="pay", guards={"budget": {"max_calls": 6}})]
    policy = Policy(
        [Budget(max_calls=8), Rate(max_calls_per_second=4), Duplicates(window=2)],
        tools=[Tool(name="pay", cost_usd=0.2, timeout=300)],
        rules=rules,
        scopes={
            "user": [Budget(max_calls=5, max_cost_usd=1.0), Rate(max_calls_per_minute=6)],
            "tenant": [Growth(max_requests_per_second=3, max_calls_per_second=3), Budget(max_tokens=9)],
        },
    )

    def make(who: int) -> Session:
        own = {"user": f"u{who % 2}", "tenant": "acme"}
        return policy.session(f"s{who}", scopes=own, store=store, records=sink, clock=clock)

    tell(make, clock, steps)
    assert all(one.same for one in again(policy, lines(sink)))
