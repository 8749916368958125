"""
Calls that a host runs: decided, claimed, completed by id, released.
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Approve, Budget, Duplicates, MemorySink, MemoryStore, Policy, Rate
from guardrails.core.chain import Rule
from guardrails.core.guards.budget import held
from guardrails.core.scopes import OPEN
from guardrails.core.state import SessionState
from guardrails.core.tool import Tool
from guardrails.core.values.names import scope_key
from guardrails.errors import SessionError
from tests.conftest import FakeClock
from tests.session.conftest import never, replays, state_of


TOOLS = [Tool(name="pay", cost_usd=0.25, tokens=10), Tool(name="look", read_only=True), Tool(name="slow", timeout=30)]
SCOPE = scope_key("user", "ada")


def policy(*guards: Any, **more: Any) -> Policy:
    return Policy([Budget(max_calls=5, max_cost_usd=1.0, max_tokens=1_000), Duplicates(), *guards], tools=TOOLS, **more)


def used(state: SessionState) -> tuple[int, ...]:
    """
    Calls, turns, micro-dollars, tokens; the two latter held; admissions that are open, and what is guessed of them.
    """
    charged = (state.calls, state.turns, state.cost, state.tokens)
    return (*charged, state.held_cost, state.held_tokens, len(state.pending), sum(held(state, guesses=True)))


NOTHING = (0,) * 8
PAID = (1, 1, 250_000, 10, 0, 0, 0, 0)


def test_a_claimed_call_is_claimed_once_whoever_asks(clock: Any) -> None:
    session = policy().session("s", clock=clock)
    assert not session.decide("slow", {}, id="c1").claimed
    clock.advance(29)
    first = session.decide("slow", {}, id="c1", claim=True)
    assert (first.allowed, first.claimed) == (True, True)
    clock.advance(29)
    assert session.decide("slow", {}, id="c1", claim=True).code == "call.in_flight"
    assert session.call("slow", {}, never, id="c1").code == "call.in_flight"
    assert session.decide("slow", {}, id="c1").allowed
    assert session.complete(first, "done").ok
    assert session.ledger.progress["calls_used"] == 1


def told(session: Any, how: str, which: Any, **more: Any) -> None:
    if how == "complete":
        session.complete(which, 1, **more)
    else:
        getattr(session.calls, how)(which, **more)


@pytest.mark.parametrize("how", ["complete", "release", "suspend"])
def test_an_id_that_no_open_call_has_is_an_error_that_says_what_to_do(how: str, clock: Any) -> None:
    session = policy().session("s", clock=clock)
    session.complete(session.decide("look", {}, id="done"), 1)
    for unknown in ("never", "done"):
        with pytest.raises(SessionError, match=f"no open calls have the id `{unknown}` in `s`: `decide` it first"):
            told(session, how, unknown)
    with pytest.raises(SessionError, match="the decision is of the session `t`, not of `s`"):
        told(session, how, policy().session("t").decide("look", {}))


@pytest.mark.parametrize("how", ["complete", "release"])
def test_open_calls_of_one_id_are_told_apart_by_their_arguments(how: str, clock: Any) -> None:
    store = MemoryStore()
    session = policy().session("s", clock=clock, store=store)
    first, _ = (session.decide("look", {"n": n}, id="c1") for n in (1, 2))
    with pytest.raises(SessionError, match="2 open calls have the id `c1` in `s`: `decide` it first, or say which"):
        told(session, how, "c1")
    with pytest.raises(SessionError, match="no open calls have the id `c1` with these arguments"):
        told(session, how, "c1", arguments={"n": 3})
    told(session, how, "c1", arguments='{"n": 2.0}')
    assert [one.sig for one in state_of(store).pending.values()] == [first.call.sig]
    told(session, how, "c1")
    assert not state_of(store).pending


# What never ran


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.parametrize("by", ["decision", "id"])
def test_a_released_call_was_never_made(by: str, claim: bool, clock: Any) -> None:
    store, sink, made = MemoryStore(), MemorySink(), policy()
    session = made.session("s", clock=clock, store=store, records=sink)
    decision = session.decide("pay", {"usd": 1}, id="c1", claim=claim)
    session.calls.release(decision if by == "decision" else "c1")
    assert used(state_of(store)) == NOTHING
    assert session.call("pay", {"usd": 1}, lambda *_: "paid", id="c1").ok
    session.calls.release(decision)
    assert used(state_of(store)) == PAID
    assert [record["event"] for record in sink.records] == ["call", "release", "call", "settle"]
    assert replays(made, sink, store) == 2


def test_a_session_that_a_released_call_had_ended_goes_on(clock: Any) -> None:
    session = Policy([Budget(max_calls=2)]).session("s", clock=clock)
    first, _ = (session.decide("look", {"n": n}, id=f"c{n}") for n in (1, 2))
    session.calls.release(first)
    assert session.tool_choice("auto") == "auto"
    assert session.decide("look", {"n": 3}, id="c3").allowed
    assert session.exhausted == "budget.max_calls"


def test_a_released_question_to_a_person_is_withdrawn(clock: Any) -> None:
    store = MemoryStore()
    session = policy(Approve(tools=("pay",))).session("s", clock=clock, store=store)
    for approved in (False, True):
        assert session.call("pay", {"usd": 1}, never, id="c1").code == "approve.pending"
        if approved:
            session.approve("c1")
        session.calls.release("c1")
        assert session.pending() == []
        assert used(state_of(store)) == NOTHING


steps = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.sampled_from(["pay", "look", "slow"]), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("turn"), st.integers(0, 2)),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 5.0])),
        st.tuples(st.sampled_from(["suspend", "release", "complete"]), st.integers(0, 20)),
    ),
    max_size=18,
)


@given(steps, st.randoms(use_true_random=False), st.booleans())
def test_what_is_held_is_the_same_everywhere_and_the_release_of_everything_returns_to_the_start(
    story: list[tuple[Any, ...]], order: Any, completes: bool
) -> None:
    clock, store, sink = FakeClock(), MemoryStore(), MemorySink()
    made = Policy(
        [Budget(max_calls=12, max_cost_usd=2.0, max_tokens=1_000), Duplicates(), Rate(max_calls_per_second=100)],
        tools=TOOLS,
        rules=[Rule(match="pay", guards={"budget": {"max_calls": 6, "max_cost_usd": 1.0}})],
        scopes={"user": [Budget(max_calls=12, max_cost_usd=2.0)]},
    )
    session = made.session("s", clock=clock, store=store, scopes={"user": "ada"}, records=sink)
    open_: list[Any] = []
    done = 0
    for step in story:
        match step:
            case ("decide", tool, number, claim):
                decision = session.decide(tool, {"n": number}, id=f"{tool}{number}", claim=claim)
                if decision.allowed and not decision.repeated:
                    open_.append(decision)
            case ("turn", calls):
                session.begin_turn(calls or None)
            case ("wait", seconds):
                clock.advance(seconds)
            case ("suspend", at) if open_:
                session.calls.suspend(open_[at % len(open_)])
            case ("release", at) if open_:
                session.calls.release(open_.pop(at % len(open_)))
            case ("complete", at) if open_ and completes:
                session.complete(open_.pop(at % len(open_)), "done")
                done += 1
        own, scope = state_of(store), state_of(store, SCOPE)
        assert own.calls == scope.calls == len(open_) + done
        assert (own.cost, own.held_cost) == (scope.cost, scope.reserved.get(OPEN, {}).get("max_cost", 0))
        assert own.held_cost == sum(one.cost for one in open_)
    order.shuffle(open_)
    for decision in open_:
        session.calls.release(decision.call.id if order.random() < 0.5 else decision)
    own, scope = state_of(store), state_of(store, SCOPE)
    assert (own.pending, scope.pending) == ({}, {})
    assert (own.held_cost, own.held_tokens, scope.reserved) == (0, 0, {})
    assert own.calls == scope.calls == done
    if not done:
        assert (own.turns, own.cost, own.tokens, own.present.admitted) == (0, 0, 0, 0)
        assert not any((own.own.get("tools.budget") or {}).values())
    replays(made, sink)
