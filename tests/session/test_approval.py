"""
Calls that wait for a person: asked once, run once, given back after a no.
"""

import json

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Approve, Budget, Denials, Duplicates, MemorySink, MemoryStore, Policy
from guardrails.core.state import SessionState
from guardrails.core.tool import Tool
from guardrails.errors import SessionError
from guardrails.session.calls import ParkedCall
from tests.conftest import FakeClock
from tests.replaying import replay
from tests.session.conftest import Faulty, replays, state_of
from tests.tables import table


HOUR = 3_600


class Bank:
    def __init__(self) -> None:
        self.paid: list[Any] = []

    def __call__(self, tool: str, arguments: Any) -> str:
        self.paid.append((tool, arguments))
        return "paid"


def asking(*guards: Any, expires: float | None = None, **more: Any) -> Policy:
    return Policy([Approve(tools=("pay_*",), reason="money leaves the house", expires=expires), *guards], **more)


@pytest.fixture
def bank() -> Bank:
    return Bank()


def test_a_call_waits_until_it_is_approved_and_then_runs_once(clock: FakeClock, bank: Bank) -> None:
    session = asking().session("s", clock=clock)

    def code(tool: str = "pay_rent", usd: int = 900) -> str | None:
        found: str | None = session.call(tool, {"usd": usd}, bank, id="call_1").code
        return found

    first = session.call("pay_rent", {"usd": 900}, bank, id="call_1")
    assert (first.status, first.code, first.retryable) == ("denied", "approve.pending", False)
    assert "money leaves the house" in (first.message or "")
    (waiting,) = session.pending()
    assert (waiting.id, waiting.tool, waiting.arguments, waiting.reason) == (
        *("call_1", "pay_rent", {"usd": 900}, "money leaves the house"),
    )
    session.approve("call_1", by="ann")
    assert session.pending() == []
    # Another argument is another call.
    assert [code(usd=901), code("pay_tax")] == ["approve.pending"] * 2
    assert bank.paid == []
    assert [code(), code()] == [None, "approve.pending"]
    assert bank.paid == [("pay_rent", {"usd": 900})]


def test_what_is_refused_is_refused_with_what_the_person_said(clock: FakeClock, bank: Bank) -> None:
    tools = [Tool(name="pay_rent", cost_usd=0.6)]
    session = asking(Budget(max_calls=1, max_cost_usd=1.0), tools=tools).session("s", clock=clock)
    session.call("pay_rent", {"usd": 900}, bank, id="call_1")
    assert session.ledger.progress["cost_left_usd"] == 0.4
    session.refuse("call_1", reason="Ask Ann\x1b[31m\nfirst")
    said = session.call("pay_rent", {"usd": 900}, bank, id="call_2")
    assert (said.code, "Ask Ann[31m first" in (said.message or "")) == ("approve.refused", True)
    progress = session.ledger.progress
    assert (progress["cost_left_usd"], progress["calls_left"], bank.paid) == (1.0, 1, [])


def test_a_question_that_nobody_answers_in_time_is_over_and_may_be_asked_again(clock: FakeClock, bank: Bank) -> None:
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


# Limits


def test_what_waits_holds_its_share_of_a_limit_and_ends_no_session(clock: FakeClock, bank: Bank) -> None:
    session = asking(Budget(max_calls=1)).session("s", clock=clock)
    session.call("pay_rent", {}, bank, id="call_1")
    held = session.call("look", {}, bank)
    assert held.code == "budget.max_calls"
    assert "wait for a person" in (held.limit_message or "")
    assert not session.exhausted
    session.refuse("call_1")
    assert session.call("look", {}, bank).ok
    assert session.exhausted


def test_time_stands_still_while_all_that_is_open_waits(clock: FakeClock, bank: Bank) -> None:
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


# One question, one execution


def test_equal_calls_of_many_threads_are_one_question_and_one_execution(clock: FakeClock, bank: Bank) -> None:
    asked: list[ParkedCall] = []
    session = asking().session("s", clock=clock, approver=asked.append)

    def pay(number: int) -> str | None:
        code: str | None = session.call("pay_rent", {"usd": 900}, bank, id=f"call_{number}").code
        return code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(pay, range(8))) == {"approve.pending"}
        assert (len(session.pending()), len({one.n for one in asked})) == (1, 1)
        session.approve(session.pending()[0])
        list(pool.map(pay, range(8)))
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
    session = asking().session(f"s{id(approver)}", clock=clock, approver=approver)
    envelope = session.call("pay_rent", {"usd": 1}, bank)
    assert (envelope.code, len(bank.paid), reason in (envelope.message or "")) == (code, 0 if code else 1, True)


# Elsewhere, and later


def test_scopes_hold_what_waits_and_get_it_back(clock: FakeClock, bank: Bank) -> None:
    sink, store = MemorySink(), MemoryStore()
    policy = asking(
        scopes={"user": [Budget(max_calls=1, max_cost_usd=1.0)]}, tools=[Tool(name="pay_rent", cost_usd=0.5)]
    )

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
    assert replays(policy, sink) == 5


@pytest.mark.parametrize("ended", ["lost", "timeout", "failed", "worked"])
def test_a_person_is_told_that_the_same_call_may_have_happened(ended: str, clock: FakeClock, bank: Bank) -> None:
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


def test_nothing_runs_without_a_yes_because_the_store_fails(bank: Bank) -> None:
    store = Faulty()
    session = asking(on_error="allow").session("s", store=store)
    store.down = True
    assert session.call("pay_rent", {}, bank).code == "store.error"
    assert session.call("look", {}, bank).ok
    assert [tool for tool, _ in bank.paid] == ["look"]


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
    clock, sink, store = FakeClock(), MemorySink(), MemoryStore()
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
    state, live = state_of(store), store.update(("s",), lambda states: states[0])
    assert state == live
    assert state.held_cost == sum(one.cost for one in state.pending.values())
    again = SessionState()
    assert all(one.same for one in replay(policy.chain, sink.records, again))
    kept = ("stood_ms", "pending", "own", "calls")
    assert [getattr(again, name) for name in kept] == [getattr(state, name) for name in kept]
