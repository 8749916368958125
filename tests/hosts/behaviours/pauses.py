"""
Calls that wait for a person: by the guard `approve`, and in the host's own form.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Approve, Budget, MemorySink, Policy
from tests.conftest import FakeClock
from tests.hosts.driver import Asked, Call, Say
from tests.replaying import replay

from .base import Behaviours, envelope, in_turn, search, searching


HOUR = 3_600
PAY = Call("pay", {"amount": 5})


class Bank:
    """
    The tool `pay`, and what it paid.
    """

    def __init__(self) -> None:
        self.paid: list[int] = []
        paid = self.paid

        def pay(amount: int) -> str:
            """Pay an amount."""
            paid.append(amount)
            return "paid"

        self.pay: Callable[[int], str] = pay


def once(asked: Asked) -> Say:
    """
    A model that pays, and is done once it reads of it.
    """
    return Say("Done.") if asked.results else Say(calls=(PAY,))


class Pauses(Behaviours):
    """
    Approvals.
    """

    def test_a_call_waits_until_a_person_approves_it_and_then_runs_once(self, clock: FakeClock) -> None:
        bank, policy = Bank(), Policy([Approve(tools=("pay",)), Budget(max_calls=5)])
        adapter = self.host.adapter(policy, clock=clock)
        asks = in_turn(Say(calls=(PAY,)), Say(calls=(PAY,)))
        waits = self.again(adapter, [bank.pay], asks, thread="t")
        assert [envelope(result)["code"] for result in waits.results] == ["approve.pending"] * 2
        assert waits.answer == "Done."
        session = policy.session("t", clock=clock)
        [parked] = session.pending()
        assert (bank.paid, session.ledger.progress["calls_used"]) == ([], 1)

        clock.advance(HOUR)
        session.approve(parked)
        paid = self.again(adapter, [bank.pay], asks, thread="t")
        assert bank.paid == [5]
        assert [envelope(result)["status"] for result in paid.results[-2:]] == ["success", "denied"]
        assert session.ledger.progress["calls_used"] == 2

    @pytest.mark.parametrize(
        ("approver", "paid", "said"),
        [(lambda parked: parked.arguments == {"amount": 5}, [5], "success"), (lambda _: "too much", [], "too much")],
    )
    def test_a_call_that_an_approver_answers_runs_at_once_or_is_told_why(
        self, approver: Any, paid: list[int], said: str
    ) -> None:
        bank = Bank()
        done = self.go(Policy([Approve(tools=("pay",))]), [bank.pay], once, options={"approver": approver})
        assert bank.paid == paid
        assert said in done.results[0]

    def test_a_call_that_the_host_holds_is_charged_once_and_runs_an_hour_later(self, clock: FakeClock) -> None:
        bank, policy, sink = Bank(), Policy([Budget(max_calls=5)]), MemorySink()
        options = {"clock": clock, "records": sink}
        held = self.go(policy, [bank.pay], once, options=options, thread="t", pausing=["pay"])
        assert (held.paused, bank.paid) == (["pay"], [])

        clock.advance(HOUR)
        done = self.go(policy, [bank.pay], once, options=options, thread="t", pausing=["pay"], resume=True)
        assert (done.paused, bank.paid) == ([], [5])
        assert envelope(done.results[-1])["status"] == "success"
        assert done.answer == "Done."
        session = policy.session("t", clock=clock)
        assert session.ledger.progress["calls_used"] == 1
        assert session.ledger.read(lambda state, _: dict(state.pending)) == {}
        assert all(again.same for again in replay(policy.chain, sink.records))

    def test_a_pause_of_one_call_runs_the_others_of_its_turn_once(self) -> None:
        ran: list[str] = []
        bank, policy = Bank(), Policy([Budget(max_calls=5)])

        def script(asked: Asked) -> Say:
            return Say("Done.") if len(asked.results) == 2 else Say(calls=(search("x"), PAY))

        tools: list[Callable[..., Any]] = [searching(ran), bank.pay]
        held = self.go(policy, tools, script, thread="t", pausing=["pay"])
        assert held.paused == ["pay"]
        done = self.go(policy, tools, script, thread="t", pausing=["pay"], resume=True)
        assert (ran, bank.paid, done.answer) == (["x"], [5], "Done.")
        assert policy.session("t").ledger.progress["calls_used"] == 2
