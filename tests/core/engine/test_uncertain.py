"""
A call that is not to be made twice, and whose end nobody knows.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from guardrails import Budget, Envelope, Failed, MemoryStore, Policy, SqliteStore, Tool
from tests.core.guards.calls import gives, make
from tests.tables import table


PAY = Tool(name="pay", idempotent=False, timeout=1)
POLICY = Policy([Budget(max_calls=99)], tools=[PAY])
ARGUMENTS = {"usd": 5}
UNKNOWN = "call.uncertain"
slow, ok = gives(TimeoutError("no answer")), gives("paid")


def pay(session: Any, execute: Callable[..., Any] = ok, id: str | None = "call_1") -> Envelope:
    envelope: Envelope = session.call("pay", ARGUMENTS, execute, id=id)
    return envelope


@table("policy", [Policy(), Policy.load("default"), Policy.load("strict")])
def test_a_payment_that_timed_out_is_made_again_only_if_a_person_says_so(policy: Policy, clock: Any) -> None:
    session = policy.session("s", clock=clock, tools=[PAY])
    assert pay(session, slow).error_type == "timeout"
    assert [one.arguments for one in session.pending()] == [ARGUMENTS]
    for _ in range(3):
        clock.advance(120)
        again = pay(session, id=None)
        assert (again.code, again.ok) == (UNKNOWN, False)
    assert "nobody knows whether it happened" in str(again.message)
    assert session.call("pay", {"usd": 6}, ok).ok
    session.approve("call_1")
    assert pay(session).ok


def pages(*_: Any) -> Any:
    yield 1
    raise TimeoutError("slow")


@table(("declared", "execute", "code"), [
    (PAY, slow, UNKNOWN), (PAY, pages, UNKNOWN), (Tool(name="pay", destructive=True), slow, UNKNOWN),
    (PAY, gives(Failed("gone", unknown=True)), UNKNOWN), (PAY, gives(ConnectionError("refused")), None),
    (Tool(name="pay", destructive=True, idempotent=True, retryable=True), slow, UNKNOWN),
    # What a tool says itself is an end: what ran it ended the work.
    (PAY, gives(Failed("killed", error_type="timeout")), None), (PAY, gives(Envelope.error("timeout", "killed")), None),
    (PAY, gives(ZeroDivisionError()), None),
    # Only what is declared so is not made twice, and a look is made again whatever else is said of it.
    (Tool(name="pay", idempotent=True), slow, None), (Tool(name="pay"), slow, None),
    (Tool(name="pay", read_only=True, idempotent=False, destructive=True), slow, None),
])  # fmt: skip
@table("mode", ["enforce", "observe"])
def test_what_is_an_end_and_what_is_made_again(declared: Tool, execute: Any, code: Any, mode: Any, clock: Any) -> None:
    session = make(clock, tools=[declared], mode=mode)
    failed, refused = pay(session, execute), code if mode == "enforce" else None
    assert not failed.ok
    # What will be refused is not advised.
    assert not (refused and failed.retryable)
    assert pay(session).code == refused


@table(("late", "said"), [("paid", "came late: it worked"), (ZeroDivisionError(), None)])
def test_a_late_end_is_told_once_if_it_worked_and_then_it_is_another_call(late: Any, said: Any, clock: Any) -> None:
    session = make(clock, tools=[PAY])
    decision = session.decide("pay", ARGUMENTS, id="call_1", claim=True)
    session.complete(decision, TimeoutError("no answer"))
    session.calls.settle(decision, session.ledger.plan("pay"), late, unread=True)
    answer = pay(session, id=None)
    assert (answer.code, said is None or said in str(answer.message)) == (UNKNOWN if said else None, True)
    assert said is None or pay(session, id=None).ok


def test_the_admission_of_a_process_that_was_lost_is_unknown_once_it_expires(tmp_path: Path, clock: Any) -> None:
    with SqliteStore(tmp_path / "states.db") as store:
        assert POLICY.session("s", store=store, clock=clock).decide("pay", ARGUMENTS, id="call_1", claim=True).allowed
    with SqliteStore(tmp_path / "states.db") as store:
        second = POLICY.session("s", store=store, clock=clock)
        running = pay(second)
        assert running.code == "call.in_flight"
        assert "first call" not in str(running.message) + str(running.next_action_hint)
        clock.advance(60)
        assert pay(second, id=None).code == UNKNOWN
        [one] = second.pending()
        assert (one.id, one.reason) == ("call_1", "interrupted: nobody knows whether it happened")
        second.approve("call_1", by="ann")
        assert (pay(second).value, second.pending()) == ("paid", [])


def test_who_ends_a_call_may_know_less_of_its_tool_than_who_began_it(clock: Any) -> None:
    store = MemoryStore()
    first, second = (Policy().session("s", store=store, clock=clock) for _ in range(2))
    first.calls.declare(PAY)
    assert first.decide("pay", ARGUMENTS, id="call_1", claim=True).allowed
    second.complete("call_1", TimeoutError("no answer"), arguments=ARGUMENTS)
    second.calls.declare(PAY)
    assert pay(second, id=None).code == UNKNOWN
