"""
Deciding again what was recorded.
"""

from contextlib import suppress
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Growth, Policy, Retryable, SessionError, SessionState
from guardrails.offline.replay.exact import Replayed
from guardrails.session.session import Session
from guardrails.sinks import MemorySink, by_session, read
from tests.replaying import replay
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def again(policy: Policy, sink: MemorySink, session: Session) -> list[Replayed]:
    state = SessionState()
    mine = [record for record in sink.records if record["session_id"] == session.id]
    replayed = list(replay(policy.chain, mine, state))
    assert state == session.ledger.read(lambda live, _: live)
    return replayed


def test_a_claim_is_claimed_again(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=5)]), MemorySink()
    session = policy.session("s", records=sink, clock=clock)
    session.decide("pay", {"n": 1}, id="call_0")

    def execute(*_: Any) -> str:
        return session.call("pay", {"n": 1}, ok, id="call_0").code or ""

    assert session.call("pay", {"n": 1}, execute, id="call_0").value == "call.in_flight"
    assert [record["event"] for record in sink.records] == ["call", "claim", "call", "settle"]
    assert [r.same for r in again(policy, sink, session)] == [True, True]


def test_turns_charges_extensions_and_waits_are_lived_through_again(clock: Any) -> None:
    policy, sink = Policy([Budget(max_turns=1, max_cost_usd=0.05), Retryable()]), MemorySink()
    session = policy.session("s", records=sink, clock=clock)

    def fail(*_: Any) -> None:
        raise TimeoutError

    session.charge(model="m", usage={"prompt_tokens": 5}, cost_usd=0.02, calls=1)
    session.call("a", {}, fail)
    session.charge(model="m", usage={"prompt_tokens": 5}, cost_usd=0.02)
    session.call("b", {}, ok)
    session.extend(max_turns=2)
    session.call("a", {}, ok)
    clock.advance(2)
    session.call("a", {}, ok)
    replayed = again(policy, sink, session)
    assert [r.made["code"] for r in replayed] == [None, "budget.max_turns", "retryable.wait", None]
    assert all(r.same for r in replayed)


def test_two_lives_of_one_name_in_one_file_are_replayed_each_by_itself(clock: Any, tmp_path: Any) -> None:
    def live() -> Policy:
        policy = Policy([Budget(max_calls=3), Duplicates()])
        with policy.session("trip-42", records=tmp_path / "calls.jsonl", clock=clock) as session:
            for n in range(4):
                session.call("a", {"n": n}, ok)
        return policy

    live()
    chain = live().chain
    records = by_session(read(tmp_path / "calls.jsonl"))["trip-42"]
    assert len({record["run"] for record in records}) == 2
    state = SessionState()
    replayed = list(replay(chain, records, state))
    assert [r.made["code"] for r in replayed].count("budget.max_calls") == 2
    assert len(replayed) == 8
    assert all(r.same for r in replayed)
    assert (state.calls, state.n) == (3, 7)


def everything(clock: Any) -> tuple[Policy, list[dict[str, Any]]]:
    """
    A policy and the records of a session in which most things happen.
    """
    policy, sink = Policy([Budget(max_calls=9), Duplicates(), Growth(max_requests_per_second=50)]), MemorySink()
    session = policy.session("s", records=sink, clock=clock)
    session.begin_turn()
    session.request()
    session.call("a", {"n": 1}, ok)
    session.call("a", {"n": 1}, ok)
    session.call("b", {}, lambda *_: 1 / 0)
    session.charge(model="m", cost_usd=0.1)
    session.extend(max_calls=3)
    late = session.decide("slow", {}, id="x")
    clock.advance(601)
    session.call("c", {}, ok)
    session.complete(late, "late")
    session.close()
    return policy, [dict(record) for record in sink.records]


ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    10**30,
    "",
    "text",
    [],
    [1],
    ["a", "b", "c"],
    {},
    {"a": 1},
    float("nan"),
    object(),
]


@table("odd", ODD)
def test_a_field_that_is_no_good_is_a_clear_error_or_no_matter(clock: Any, odd: Any) -> None:
    policy, records = everything(clock)
    assert "expire" in [record["event"] for record in records]
    assert all(one.same for one in replay(policy.chain, records))
    for at, record in enumerate(records):
        for field in record:
            wrong = [*records[:at], {**record, field: odd}, *records[at + 1 :]]
            lacking = [*records[:at], {key: record[key] for key in record if key != field}, *records[at + 1 :]]
            for given in (wrong, lacking):
                with suppress(SessionError):
                    assert all(one.same in (True, False) for one in replay(policy.chain, given))


@table("odd", [None, 1, "text", [], {}, {"n": 1}, {"n": "x", "session_id": "s"}, {"n": []}])
def test_what_is_no_record_is_said_to_be_none(odd: Any) -> None:
    chain = Policy([Budget(max_calls=1)]).chain
    with pytest.raises(SessionError, match="record"):
        replay(chain, [odd])


def test_a_session_that_is_forgotten_while_a_call_runs_begins_a_new_life_with_its_end(clock: Any) -> None:
    records, policy = MemorySink(), Policy([Budget(max_calls=5)])
    session = policy.session("s", clock=clock, records=records)
    session.call("t", {}, lambda *_: session.ledger.forget())
    session.call("t", {"n": 2}, lambda *_: 1)
    lives = [record["run"] for record in records.records]
    assert (all(lives), [life == lives[0] for life in lives]) == (True, [True, False, False, False])
    assert all(one.same for one in replay(policy.chain, records.records))
