"""
Calls that wait for a person: asked once, run once, given back after a no.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guardrails import Approve, Envelope, Policy
from guardrails.session.calls import ParkedCall
from tests.conftest import FakeClock
from tests.session.conftest import Faulty
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
    session = asking(expires=HOUR).session("s", clock=clock)
    first = bank.pay(session, usd=900)
    assert (first.status, first.code, first.retryable) == ("denied", "approve.pending", False)
    assert "money leaves the house" in (first.message or "")
    (waiting,) = session.pending()
    told = (waiting.id, waiting.tool, waiting.arguments, waiting.reason, waiting.expires)
    assert told == ("call_1", "pay_rent", {"usd": 900}, "money leaves the house", clock.now + HOUR)
    session.approve("call_1", by="ann")
    assert session.pending() == []
    # Another argument or tool is another call.
    others = bank.pay(session, usd=901), session.call("pay_tax", {"usd": 900}, bank, id="call_1")
    assert ([one.code for one in others], bank.paid) == (["approve.pending"] * 2, [])
    assert [bank.pay(session, usd=900).code for _ in range(2)] == [None, "approve.pending"]
    assert bank.paid == [("pay_rent", {"usd": 900})]


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
    (lambda one: True, None, ""), (lambda one: "too\x1b[31m\nmuch", "approve.refused", "too[31m much"),
    *((asked, "approve.pending", "") for asked in (lambda one: None, later, broken)),
    # No clear yes
    *((lambda one, answer=answer: answer, "approve.refused", "") for answer in (False, 1, "", object(), [True])),
])  # fmt: skip
def test_an_approver_is_asked_in_place(approver: Any, code: str | None, reason: str, clock: FakeClock) -> None:
    bank = Bank()
    envelope = bank.pay(asking().session("s", clock=clock, approver=approver), usd=1)
    assert (envelope.code, len(bank.paid), reason in (envelope.message or "")) == (code, 0 if code else 1, True)


def test_nothing_runs_without_a_yes_because_the_store_fails(bank: Bank) -> None:
    store = Faulty()
    session = asking(on_error="allow").session("s", store=store)
    store.down = True
    assert bank.pay(session).code == "store.error"
    assert session.call("look", {}, bank).ok
    assert [tool for tool, _ in bank.paid] == ["look"]
