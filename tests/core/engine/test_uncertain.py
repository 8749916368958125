"""
A call that is not to be made twice, and whose end nobody knows.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails import Approve, Envelope, Failed, MemorySink, Policy, SessionError, SessionState, SqliteStore, Tool
from guardrails.core.state import LIFE
from guardrails.offline.replay.exact import replay
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
