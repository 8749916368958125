"""
Calls that wait for a person: asked once, run once, given back after a no.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guardrails import Approve, Budget, Envelope, MemorySink, MemoryStore, Policy
from guardrails.core.tool import Tool
from guardrails.errors import SessionError
from guardrails.session.calls import ParkedCall
from tests.conftest import FakeClock
from tests.session.conftest import Faulty, replays
from tests.tables import table


HOUR = 3_600


class Bank:
    def __init__(self) -> None:
        self.paid: list[Any] = []

    def __call__(self, tool: str, arguments: Any) -> str:
        self.paid.append((tool, arguments))
        return "paid"

    def pay(self, session: Any, number: int = 1, **arguments: Any) -> Envelope:
        envelope: Envelope = session.call("pay_rent", arguments, self, id=f"call_{number}")
        return envelope


def asking(*guards: Any, expires: float | None = None, **more: Any) -> Policy:
    return Policy([Approve(tools=("pay_*",), reason="money leaves the house", expires=expires), *guards], **more)


@pytest.fixture
def bank() -> Bank:
    return Bank()


def test_a_call_waits_until_it_is_approved_and_then_runs_once(clock: FakeClock, bank: Bank) -> None:
    session = asking().session("s", clock=clock)
    first = bank.pay(session, usd=900)
    assert (first.status, first.code, first.retryable) == ("denied", "approve.pending", False)
    assert "money leaves the house" in (first.message or "")
    (waiting,) = session.pending()
    told = (waiting.id, waiting.tool, waiting.arguments, waiting.reason)
    assert told == ("call_1", "pay_rent", {"usd": 900}, "money leaves the house")
    session.approve("call_1", by="ann")
    assert session.pending() == []
    # Another argument or tool is another call.
    others = bank.pay(session, usd=901), session.call("pay_tax", {"usd": 900}, bank, id="call_1")
    assert ([one.code for one in others], bank.paid) == (["approve.pending"] * 2, [])
    assert [bank.pay(session, usd=900).code for _ in range(2)] == [None, "approve.pending"]
    assert bank.paid == [("pay_rent", {"usd": 900})]


def test_what_is_refused_is_refused_with_what_the_person_said(clock: FakeClock, bank: Bank) -> None:
    tools = [Tool(name="pay_rent", cost_usd=0.6)]
    session = asking(Budget(max_calls=1, max_cost_usd=1.0), tools=tools).session("s", clock=clock)
    bank.pay(session)
    assert session.ledger.progress["cost_left_usd"] == 0.4
    # What waits holds its share of a limit, and ends no session.
    held = session.call("look", {}, bank)
    assert (held.code, "wait for a person" in (held.limit_message or "")) == ("budget.max_calls", True)
    assert not session.exhausted
    session.refuse("call_1", reason="Ask Ann\x1b[31m\nfirst")
    said = bank.pay(session, 2)
    assert (said.code, "Ask Ann[31m first" in (said.message or "")) == ("approve.refused", True)
    progress = session.ledger.progress
    assert (progress["cost_left_usd"], progress["calls_left"], bank.paid) == (1.0, 1, [])
    assert session.call("look", {}, bank).ok
    assert session.exhausted


def test_a_question_that_nobody_answers_in_time_is_over_and_may_be_asked_again(clock: FakeClock, bank: Bank) -> None:
    session = asking(expires=HOUR).session("s", clock=clock)
    bank.pay(session)
    assert [waiting.expires for waiting in session.pending()] == [clock.now + HOUR]
    clock.now += HOUR
    assert session.pending() == []
    with pytest.raises(SessionError, match="no call `call_1` waits"):
        session.approve("call_1")
    assert [bank.pay(session).code for _ in range(2)] == ["approve.expired", "approve.pending"]
    session.approve(session.pending()[0])
    assert bank.pay(session).ok


def test_time_stands_still_while_all_that_is_open_waits(clock: FakeClock, bank: Bank) -> None:
    session = asking(Budget(max_elapsed=60.0)).session("s", clock=clock)
    clock.now += 10
    bank.pay(session)
    clock.now += HOUR
    assert (session.tool_choice("auto"), session.ledger.progress["seconds_left"]) == ("auto", 60)
    session.approve("call_1")
    assert bank.pay(session).ok
    clock.now += 59
    assert session.tool_choice("auto") == "auto"
    clock.now += 1
    assert session.exhausted == "budget.max_elapsed"


def test_equal_calls_of_many_threads_are_one_question_and_one_execution(clock: FakeClock, bank: Bank) -> None:
    asked: list[ParkedCall] = []
    session = asking().session("s", clock=clock, approver=asked.append)
    with ThreadPoolExecutor(8) as pool:
        assert {made.code for made in pool.map(lambda n: bank.pay(session, n), range(8))} == {"approve.pending"}
        assert (len(session.pending()), len({one.n for one in asked})) == (1, 1)
        session.approve(session.pending()[0])
        list(pool.map(lambda n: bank.pay(session, n), range(8)))
    assert len(bank.paid) == 1


# Asked in place


async def later(one: ParkedCall) -> bool:
    return True


def broken(one: ParkedCall) -> bool:
    raise OSError("no line")


@table(("approver", "code", "reason"), [
    (lambda one: True, None, ""), (lambda one: "too much", "approve.refused", "too much"),
    *((asked, "approve.pending", "") for asked in (lambda one: None, later, broken)),
    # No clear yes
    *((lambda one, answer=answer: answer, "approve.refused", "") for answer in (False, 1, "", object(), [True])),
])  # fmt: skip
def test_an_approver_is_asked_in_place(approver: Any, code: str | None, reason: str, clock: FakeClock) -> None:
    bank = Bank()
    envelope = bank.pay(asking().session("s", clock=clock, approver=approver), usd=1)
    assert (envelope.code, len(bank.paid), reason in (envelope.message or "")) == (code, 0 if code else 1, True)


# Elsewhere, and later


def test_scopes_hold_what_waits_and_get_it_back(clock: FakeClock, bank: Bank) -> None:
    sink, store = MemorySink(), MemoryStore()
    scopes = {"user": [Budget(max_calls=1, max_cost_usd=1.0)]}
    policy = asking(scopes=scopes, tools=[Tool(name="pay_rent", cost_usd=0.5)])
    a, b, c, d = (policy.session(n, clock=clock, store=store, scopes={"user": "u"}, records=sink) for n in "abcd")
    bank.pay(a)
    clock.now += 24 * HOUR
    assert bank.pay(b).code == "user.budget.max_calls"
    a.refuse("call_1")
    bank.pay(b, 2)
    b.ledger.forget()
    bank.pay(c, 3)
    c.approve("call_3")
    assert bank.pay(c, 3).ok
    assert bank.pay(d).code == "user.budget.max_calls"
    assert replays(policy, sink) == 5


ENDS: dict[Any, bool] = {None: True, TimeoutError("late"): True, PermissionError("no"): False, "paid": False}


@table(("end", "unknown"), ENDS.items())
def test_a_person_is_told_that_the_same_call_may_have_happened(end: Any, unknown: bool, clock: FakeClock) -> None:
    session, bank = asking().session("s", clock=clock), Bank()
    bank.pay(session)
    session.approve("call_1")
    decision = session.decide("pay_rent", {}, id="call_1")
    if end is None:  # of a process that was lost
        clock.now += HOUR
    else:
        session.complete(decision, end)
    bank.pay(session, 2)
    assert ("may have happened" in session.pending()[0].reason) is unknown


def test_nothing_runs_without_a_yes_because_the_store_fails(bank: Bank) -> None:
    store = Faulty()
    session = asking(on_error="allow").session("s", store=store)
    store.down = True
    assert bank.pay(session).code == "store.error"
    assert session.call("look", {}, bank).ok
    assert [tool for tool, _ in bank.paid] == ["look"]
