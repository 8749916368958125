"""
Calls that wait for a person: asked once, run once, given back after a no.
"""

import asyncio
import json
import threading

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Denials,
    Duplicates,
    MemorySink,
    MemoryStore,
    ParkedCall,
    Policy,
    SessionError,
    SqliteStore,
    Tool,
)
from guardrails.core.guards.approve import Approve
from guardrails.core.packing import pack, unpack
from tests.replaying import replay


HOUR = 3_600


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Bank:
    def __init__(self) -> None:
        self.paid: list[Any] = []

    def __call__(self, tool: str, arguments: Any) -> str:
        self.paid.append((tool, arguments))
        return "paid"


def asking(*guards: Any, expires: float | None = None, **more: Any) -> Policy:
    return Policy([Approve(tools=("pay_*",), reason="money leaves the house", expires=expires), *guards], **more)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bank() -> Bank:
    return Bank()


def test_a_call_waits_until_it_is_approved_and_then_runs_once(clock: Clock, bank: Bank) -> None:
    session = asking().session("s", clock=clock)
    first = session.call("pay_rent", {"usd": 900}, bank, id="call_1")
    assert (first.status, first.code, first.retryable) == ("denied", "approve.pending", False)
    assert "money leaves the house" in (first.message or "")
    assert bank.paid == []
    (waiting,) = session.pending()
    assert (waiting.id, waiting.tool, waiting.arguments, waiting.reason) == (
        *("call_1", "pay_rent", {"usd": 900}, "money leaves the house"),
    )
    session.approve("call_1", by="ann")
    assert session.pending() == []
    assert session.call("pay_rent", {"usd": 900}, bank, id="call_1").ok
    assert session.call("pay_rent", {"usd": 900}, bank, id="call_1").code == "approve.pending"
    assert len(bank.paid) == 1


def test_another_argument_is_another_call(clock: Clock, bank: Bank) -> None:
    session = asking().session("s", clock=clock)
    session.call("pay_rent", {"usd": 900}, bank, id="call_1")
    session.approve("call_1")
    assert session.call("pay_rent", {"usd": 901}, bank, id="call_1").code == "approve.pending"
    assert session.call("pay_tax", {"usd": 900}, bank, id="call_1").code == "approve.pending"
    assert bank.paid == []


def test_what_is_refused_is_refused_with_what_the_person_said(clock: Clock, bank: Bank) -> None:
    session = asking(Budget(max_calls=1, max_cost_usd=1.0), tools=[Tool(name="pay_rent", cost_usd=0.6)]).session(
        "s", clock=clock
    )
    session.call("pay_rent", {"usd": 900}, bank, id="call_1")
    assert session.ledger.progress["cost_left_usd"] == 0.4
    session.refuse("call_1", reason="Ask Ann\x1b[31m\nfirst")
    said = session.call("pay_rent", {"usd": 900}, bank, id="call_2")
    assert said.code == "approve.refused"
    assert "Ask Ann[31m first" in (said.message or "")
    assert session.ledger.progress["cost_left_usd"] == 1.0
    assert session.ledger.progress["calls_left"] == 1
    assert bank.paid == []


def test_a_question_that_nobody_answers_in_time_is_over_and_may_be_asked_again(clock: Clock, bank: Bank) -> None:
    session = asking(expires=HOUR).session("s", clock=clock)
    session.call("pay_rent", {}, bank, id="call_1")
    (waiting,) = session.pending()
    assert waiting.expires == clock.now + HOUR
    clock.now += HOUR
    assert session.pending() == []
    with pytest.raises(SessionError, match="no call `call_1` waits"):
        session.approve("call_1")
    assert session.call("pay_rent", {}, bank, id="call_1").code == "approve.expired"
    assert session.call("pay_rent", {}, bank, id="call_1").code == "approve.pending"
    session.approve(session.pending()[0])
    assert session.call("pay_rent", {}, bank, id="call_1").ok


def test_what_is_refused_anyway_bothers_nobody(clock: Clock, bank: Bank) -> None:
    session = asking(Budget(max_calls=0)).session("s", clock=clock)
    assert session.call("pay_rent", {}, bank).code == "budget.max_calls"
    assert session.pending() == []


# Limits


def test_what_waits_holds_its_share_of_a_limit_and_ends_no_session(clock: Clock, bank: Bank) -> None:
    session = asking(Budget(max_calls=1)).session("s", clock=clock)
    session.call("pay_rent", {}, bank, id="call_1")
    held = session.call("look", {}, bank)
    assert held.code == "budget.max_calls"
    assert "wait for a person" in (held.limit_message or "")
    assert not session.exhausted
    session.refuse("call_1")
    assert session.call("look", {}, bank).ok
    assert session.exhausted


def test_time_stands_still_while_all_that_is_open_waits(clock: Clock, bank: Bank) -> None:
    session = asking(Budget(max_elapsed=60.0)).session("s", clock=clock)
    clock.now += 10
    session.call("pay_rent", {}, bank, id="call_1")
    clock.now += HOUR
    assert session.tool_choice("auto") == "auto"
    assert session.ledger.progress["seconds_left"] == 60
    session.approve("call_1")
    assert session.call("pay_rent", {}, bank, id="call_1").ok
    clock.now += 59
    assert session.tool_choice("auto") == "auto"
    clock.now += 1
    assert session.exhausted == "budget.max_elapsed"


def test_what_waits_is_no_strike_and_what_a_person_refused_is(clock: Clock, bank: Bank) -> None:
    session = asking(Denials(max_turns_in_a_row=2)).session("s", clock=clock)
    for _ in range(20):
        session.begin_turn()
        assert session.call("pay_rent", {}, bank).code == "approve.pending"
    assert session.tool_choice("auto") == "auto"
    session.refuse(session.pending()[0])
    for _ in range(3):
        session.begin_turn()
        session.call("pay_rent", {}, bank)
    session.begin_turn()
    assert session.exhausted == "denials.max_turns_in_a_row"


# One question, one execution


def test_equal_calls_of_many_threads_are_one_question_and_one_execution(clock: Clock, bank: Bank) -> None:
    asked: list[ParkedCall] = []
    session = asking().session("s", clock=clock, approver=asked.append)
    codes: list[str | None] = []

    def pay(number: int) -> None:
        codes.append(session.call("pay_rent", {"usd": 900}, bank, id=f"call_{number}").code)

    def all_pay() -> None:
        threads = [threading.Thread(target=pay, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    all_pay()
    assert set(codes) == {"approve.pending"}
    assert len(session.pending()) == 1
    assert len({one.n for one in asked}) == 1
    session.approve(session.pending()[0])
    all_pay()
    assert len(bank.paid) == 1


# Asked in place


@pytest.mark.parametrize(
    ("answer", "code", "paid"),
    [(True, None, 1), (False, "approve.refused", 0), ("too much", "approve.refused", 0), (None, "approve.pending", 0)],
)
def test_an_approver_is_asked_in_place(answer: object, code: str | None, paid: int, clock: Clock, bank: Bank) -> None:
    session = asking().session("s", clock=clock, approver=lambda one: answer)
    envelope = session.call("pay_rent", {"usd": 1}, bank)
    assert (envelope.code, len(bank.paid)) == (code, paid)
    assert not isinstance(answer, str) or answer in (envelope.message or "")


@pytest.mark.parametrize("answer", [1, "", object(), [True]])
def test_what_is_no_clear_yes_approves_nothing(answer: object, clock: Clock, bank: Bank) -> None:
    session = asking().session("s", clock=clock, approver=lambda one: answer)
    assert not session.call("pay_rent", {}, bank).ok
    assert bank.paid == []


def test_an_approver_that_fails_or_cannot_be_awaited_approves_nothing(clock: Clock, bank: Bank) -> None:
    async def later(one: ParkedCall) -> bool:
        return True

    def broken(one: ParkedCall) -> bool:
        raise OSError("no line")

    approvers: list[Callable[[ParkedCall], Any]] = [later, broken]
    for approver in approvers:
        session = asking().session("s", clock=clock, approver=approver)
        assert session.call("pay_rent", {}, bank).code == "approve.pending"
    assert bank.paid == []


def test_a_synchronous_approver_does_not_block_the_loop(bank: Bank) -> None:
    async def story() -> None:
        went_on = threading.Event()
        session = asking().session("s", approver=lambda one: went_on.wait(10))
        running = asyncio.ensure_future(session.acall("pay_rent", {}, bank))
        await asyncio.sleep(0)
        went_on.set()
        assert (await running).ok

    asyncio.run(story())


# Elsewhere, and later


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_scopes_hold_what_waits_and_get_it_back(kind: str, tmp_path: Path, clock: Clock, bank: Bank) -> None:
    sink = MemorySink()
    policy = asking(
        scopes={"user": [Budget(max_calls=1, max_cost_usd=1.0)]}, tools=[Tool(name="pay_rent", cost_usd=0.5)]
    )
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "state.db")

    def session(name: str) -> Any:
        return policy.session(name, clock=clock, store=store, scopes={"user": "u"}, records=sink)

    session("a").call("pay_rent", {}, bank, id="call_1")
    clock.now += 24 * HOUR
    assert session("b").call("pay_rent", {}, bank).code == "user.budget.max_calls"
    session("a").refuse("call_1")
    session("b").call("pay_rent", {}, bank, id="call_2")
    session("b").ledger.forget()
    session("c").call("pay_rent", {}, bank, id="call_3")
    session("c").approve("call_3")
    assert session("c").call("pay_rent", {}, bank, id="call_3").ok
    assert session("d").call("pay_rent", {}, bank).code == "user.budget.max_calls"
    again = list(replay(policy.chain, sink.records, scopes=policy.scopes))
    assert all(one.same for one in again)
    assert len(again) == 5


@pytest.mark.parametrize("ended", ["lost", "timeout", "failed", "worked"])
def test_a_person_is_told_that_the_same_call_may_have_happened(ended: str, clock: Clock, bank: Bank) -> None:
    session = asking().session("s", clock=clock)
    session.call("pay_rent", {}, bank, id="call_1")
    session.approve("call_1")
    decision = session.decide("pay_rent", {}, id="call_1")
    if ended == "lost":
        clock.now += HOUR
    else:
        came = {"timeout": TimeoutError("late"), "failed": PermissionError("no"), "worked": "paid"}
        session.complete(decision, came[ended])
    session.call("pay_rent", {}, bank, id="call_2")
    assert ("may have happened" in session.pending()[0].reason) is (ended in ("lost", "timeout"))


class Broken(MemoryStore):
    def update(self, keys: Any, step: Any) -> Any:
        raise OSError("disk full")


def test_nothing_runs_without_a_yes_because_the_store_fails(bank: Bank) -> None:
    session = asking(on_error="allow").session("s", store=Broken())
    assert session.call("pay_rent", {}, bank).code == "store.error"
    assert session.call("look", {}, bank).ok
    assert [tool for tool, _ in bank.paid] == ["look"]


def test_a_state_with_what_waits_is_kept_whole(clock: Clock, bank: Bank) -> None:
    store = MemoryStore()
    session = asking(Duplicates(window=20), expires=HOUR).session("s", clock=clock, store=store)
    for number in range(20):
        session.call("pay_rent" if number % 5 == 0 else "look", {"n": number}, bank, id=f"call_{number}")
    session.approve("call_0")
    session.refuse("call_5", reason="no")
    state = store.update(("s",), lambda states: states[0])
    again = unpack(pack(state))
    assert again == state
    assert len(again.pending) == 3
    kept = [one.question for one in again.pending.values()]
    assert kept == [one.question for one in state.pending.values()]
    assert [one.digest for one in kept if one] == [
        one.question.digest for one in state.pending.values() if one.question
    ]


# Laws


steps = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from(["pay_a", "pay_b", "look"]), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("decide"), st.sampled_from(["pay_a", "pay_b"]), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("complete"), st.integers(0, 5)),
        st.tuples(st.just("approve"), st.integers(0, 5)),
        st.tuples(st.just("refuse"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(0, 2_000)),
        st.tuples(st.just("turn")),
        st.tuples(st.just("extend")),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_yes_is_good_for_one_execution_and_nothing_runs_without_one(story: list[tuple[Any, ...]]) -> None:
    clock, sink, store = Clock(), MemorySink(), MemoryStore()
    policy = asking(Budget(max_calls=30, max_elapsed=50_000.0), Denials(), Duplicates(), expires=HOUR)
    session = policy.session("s", clock=clock, records=sink, store=store)
    yes: dict[str, int] = {}
    ran: dict[str, int] = {}
    open_ones: list[Any] = []

    def key(tool: str, arguments: Any) -> str:
        return json.dumps([tool, arguments])

    def execute(tool: str, arguments: Any) -> str:
        ran[key(tool, arguments)] = ran.get(key(tool, arguments), 0) + 1
        return "done"

    for name, *values in story:
        if name == "call":
            tool, usd, number = values
            session.call(tool, {"usd": usd}, execute, id=f"call_{number}")
        elif name == "decide":
            tool, usd, number = values
            decision = session.decide(tool, {"usd": usd}, id=f"call_{number}", claim=True)
            if decision.allowed and (decision.claim_n or not decision.repeated):
                open_ones.append(decision)
        elif name == "complete" and open_ones:
            decision = open_ones.pop(values[0] % len(open_ones))
            execute(decision.call.tool, decision.call.arguments)
            session.complete(decision, "done")
        elif name in ("approve", "refuse") and session.pending():
            one = session.pending()[values[0] % len(session.pending())]
            if name == "approve":
                session.approve(one)
                yes[key(one.tool, one.arguments)] = yes.get(key(one.tool, one.arguments), 0) + 1
            else:
                session.refuse(one)
        elif name == "wait":
            clock.now += values[0]
        elif name == "turn":
            session.begin_turn()
        elif name == "extend":
            session.extend()
    assert all(count <= yes.get(what, 0) for what, count in ran.items() if "pay_" in what)
    state = store.update(("s",), lambda states: states[0])
    assert state.calls >= 0
    assert state.held_cost == sum(one.cost for one in state.pending.values())
    assert unpack(pack(state)) == state
    again = type(state)()
    assert all(one.same for one in replay(policy.chain, sink.records, again))
    assert (again.stood_ms, again.pending, again.own, again.calls) == (
        *(state.stood_ms, state.pending, state.own, state.calls),
    )
