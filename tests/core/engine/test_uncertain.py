"""
A call that is not to be made twice, and whose end nobody knows.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from guardrails import (
    Approve,
    Budget,
    Envelope,
    Failed,
    MemorySink,
    Policy,
    SessionError,
    SessionState,
    SqliteStore,
    Tool,
)
from guardrails.core.state import LIFE
from tests.replaying import replay
from tests.tables import table


PAY = Tool(name="pay", idempotent=False, timeout=1)
ARGUMENTS = {"usd": 5}


def slow(*_: Any) -> Any:
    raise TimeoutError("no answer")


def ok(*_: Any) -> str:
    return "paid"


def pay(session: Any, execute: Callable[..., Any] = ok, **more: Any) -> Envelope:
    envelope: Envelope = session.call("pay", ARGUMENTS, execute, **more)
    return envelope


def test_a_payment_that_timed_out_is_not_made_again_under_any_policy(clock: Any) -> None:
    for policy in (Policy([], tools=[PAY]), *(Policy.load(name) for name in ("default", "strict"))):
        session = policy.session("s", clock=clock, tools=[PAY])
        assert pay(session, slow).error_type == "timeout"
        for _ in range(3):
            clock.advance(120)
            again = pay(session)
            assert (again.code, again.ok) == ("call.uncertain", False)
        assert "nobody knows whether it happened" in str(again.message)
        assert session.call("pay", {"usd": 6}, ok).ok


@table(
    "execute, code",
    [
        (slow, "call.uncertain"),
        # What a tool says itself is an end: what ran it ended the work.
        (lambda *_: Failed("killed", error_type="timeout"), None),
        (lambda *_: Envelope.error("timeout", "killed after 1 s"), None),
        (lambda *_: 1 / 0, None),
    ],
)
def test_what_is_an_end(execute: Any, code: str | None, clock: Any) -> None:
    session = Policy([], tools=[PAY]).session("s", clock=clock)
    pay(session, execute)
    assert pay(session).code == code


@table(
    "tool, code",
    [
        (Tool(name="pay", destructive=True), "call.uncertain"),
        (Tool(name="pay", idempotent=True), None),
        (Tool(name="pay"), None),
    ],
)
def test_only_what_is_declared_so_is_not_made_twice(tool: Tool, code: str | None, clock: Any) -> None:
    session = Policy([], tools=[tool]).session("s", clock=clock)
    pay(session, slow)
    assert pay(session).code == code


def test_the_admission_of_a_process_that_was_lost_is_unknown_once_it_expires(tmp_path: Path, clock: Any) -> None:
    policy = Policy([], tools=[PAY])
    with SqliteStore(tmp_path / "states.db") as store:
        first = policy.session("s", store=store, clock=clock)
        assert first.decide("pay", ARGUMENTS, id="call_1", claim=True).allowed
    with SqliteStore(tmp_path / "states.db") as store:
        second = policy.session("s", store=store, clock=clock)
        running = pay(second, id="call_1")
        assert running.code == "call.in_flight"
        assert "first call" not in str(running.message) + str(running.next_action_hint)
        clock.advance(60)
        assert pay(second).code == "call.uncertain"
        # Its end, if it comes, is the end of it.
        [one] = second.pending()
        assert (one.id, one.reason) == ("call_1", "interrupted: nobody knows whether it happened")
        second.approve("call_1", by="ann")
        assert (pay(second).value, second.pending()) == ("paid", [])


def test_a_late_end_settles_it(clock: Any) -> None:
    session = Policy([], tools=[PAY]).session("s", clock=clock)
    decision = session.decide("pay", ARGUMENTS, claim=True)
    clock.advance(60)
    assert pay(session).code == "call.uncertain"
    assert session.complete(decision, "paid").ok
    assert pay(session).ok


def test_an_unknown_end_is_settled_by_the_id_alone_too(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([], tools=[PAY])
    session = policy.session("s", clock=clock, records=sink)
    pay(session, slow, id="call_1")
    assert [one.arguments for one in session.pending()] == [ARGUMENTS]
    assert session.complete("call_1", "paid", arguments=ARGUMENTS).ok
    assert session.pending() == []
    with pytest.raises(SessionError):
        session.complete("call_1", "again")
    assert pay(session).ok
    assert all(again.same for again in replay(policy.chain, sink.records))


def test_a_late_success_that_no_model_has_read_is_given_once(clock: Any) -> None:
    ended = Event()

    def charge(*_: Any) -> str:
        ended.wait(5)
        return "paid"

    session = Policy([], tools=[replace(PAY, timeout=0.05)]).session("s", clock=clock)
    assert session.call("pay", ARGUMENTS, charge).error_type == "timeout"
    assert pay(session).code == "call.uncertain"
    ended.set()
    deadline = monotonic() + 5
    while (again := pay(session)).previous_result is None and monotonic() < deadline:
        assert again.code == "call.uncertain"
    assert (again.code, again.previous_result) == ("call.uncertain", "paid")
    assert session.pending() == []
    assert pay(session).ok


def test_a_look_is_made_again_whatever_else_is_said_of_it(clock: Any) -> None:
    look = Tool(name="pay", read_only=True, idempotent=False, destructive=True)
    session = Policy([], tools=[look]).session("s", clock=clock)
    assert pay(session, slow).error_type == "timeout"
    assert pay(session).ok


def test_an_iterator_that_runs_out_of_time_is_an_unknown_end(clock: Any) -> None:
    def pages(*_: Any) -> Any:
        yield 1
        raise TimeoutError("slow")

    session = Policy([], tools=[PAY]).session("s", clock=clock)
    assert pay(session, pages).error_type == "timeout"
    assert pay(session).code == "call.uncertain"


def test_what_a_person_approves_is_made_under_every_policy(clock: Any) -> None:
    session = Policy.load("strict").session("s", clock=clock, tools=[PAY])
    pay(session, slow, id="call_1")
    session.approve("call_1")
    assert pay(session).ok


def test_an_unknown_end_of_a_child_is_one_of_its_family(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([Budget(max_calls=9)], tools=[PAY])
    session = policy.session("s", clock=clock, records=sink)
    with session.child("kid") as child:
        pay(child, slow, id="call_1")
    assert pay(session).code == "call.uncertain"
    with session.child("other") as child:
        assert pay(child).code == "call.uncertain"
    [one] = session.pending()
    session.approve(one)
    assert pay(session).ok
    assert all(again.same for again in replay(policy.chain, sink.records))


def test_a_person_may_let_it_be_made_once_or_never(clock: Any) -> None:
    session = Policy([], tools=[PAY]).session("s", clock=clock)
    pay(session, slow, id="call_1")
    session.refuse("call_1", reason="it was booked")
    refused = pay(session)
    assert (refused.code, "it was booked" in str(refused.message)) == ("call.uncertain", True)
    session.approve("call_1")
    assert pay(session, slow).error_type == "timeout"
    assert pay(session).code == "call.uncertain"
    with pytest.raises(SessionError):
        session.approve("call_7")


def test_where_a_person_is_asked_anyhow_the_question_says_so(clock: Any) -> None:
    session = Policy([Approve(tools=("pay",))], tools=[PAY]).session("s", clock=clock)
    pay(session)
    [one] = session.pending()
    session.approve(one)
    assert pay(session, slow).error_type == "timeout"
    assert pay(session).code == "approve.pending"
    [one] = session.pending()
    assert "may have happened" in one.reason
    session.approve(one)
    assert pay(session).ok


def test_observing_refuses_nothing(clock: Any) -> None:
    session = Policy([], tools=[PAY], mode="observe").session("s", clock=clock)
    pay(session, slow)
    assert pay(session).ok


def test_its_records_replay_exactly(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([], tools=[PAY])
    session = policy.session("s", clock=clock, records=sink)
    pay(session, slow, id="call_1")
    pay(session)
    session.approve("call_1")
    pay(session, slow)
    session.decide("pay", {"usd": 7}, claim=True)
    clock.advance(60)
    session.call("pay", {"usd": 7}, ok)
    state = SessionState()
    assert all(again.same for again in replay(policy.chain, sink.records, state))
    assert state == session.ledger.read(lambda live, _: live)


def test_the_life_of_an_admission_is_a_table_that_ends() -> None:
    stages = {stage for before, after in LIFE.values() for stage in (*before, after)}
    reached: set[Any] = {"open"}
    for _ in stages:
        reached |= {after for before, after in LIFE.values() if reached & {*before}}
    assert reached == stages
    assert {stage for before, after in LIFE.values() if after == "over" for stage in before} == stages - {"over"}
    assert all("over" not in before for before, _ in LIFE.values())
