"""
Calls that a host runs: decided, claimed, completed by id, released.
"""

from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import (
    Approve,
    Budget,
    Duplicates,
    Failed,
    Loops,
    MemorySink,
    MemoryStore,
    Policy,
    Rate,
    Rule,
    SessionError,
    SqliteStore,
    Streak,
    Success,
    Tool,
)
from guardrails.core.guards.budget import held
from guardrails.core.packing import pack, unpack
from guardrails.core.scopes import OPEN
from guardrails.core.state import SessionState
from guardrails.core.values.names import scope_key
from tests.replaying import replay


TOOLS = [Tool(name="pay", cost_usd=0.25, tokens=10), Tool(name="look", read_only=True), Tool(name="slow", timeout=30)]
SCOPE = scope_key("user", "ada")


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def policy(*guards: Any, **more: Any) -> Policy:
    return Policy([Budget(max_calls=5, max_cost_usd=1.0, max_tokens=1_000), Duplicates(), *guards], tools=TOOLS, **more)


def state_of(store: MemoryStore, key: str = "s") -> SessionState:
    states: list[SessionState] = []
    store.update((key,), lambda kept: states.append(unpack(pack(kept[0]))))
    return states[0]


def used(state: SessionState) -> tuple[int, ...]:
    return (
        state.calls,
        state.turns,
        state.cost,
        state.tokens,
        state.held_cost,
        state.held_tokens,
        len(state.pending),
        sum(held(state, guesses=True)),
    )


def never(*_: Any) -> None:
    raise AssertionError("it runs elsewhere")


# Claims


def test_a_claimed_call_is_claimed_once_whoever_asks(clock: Any) -> None:
    session = policy().session("s", clock=clock)
    first = session.decide("pay", {"usd": 1}, id="c1", claim=True)
    assert first.allowed
    assert first.claimed
    assert session.decide("pay", {"usd": 1}, id="c1", claim=True).code == "call.in_flight"
    assert session.call("pay", {"usd": 1}, never, id="c1").code == "call.in_flight"
    again = session.decide("pay", {"usd": 1}, id="c1")
    assert again.allowed
    assert session.complete(first, "paid").ok


def test_a_call_that_was_decided_is_claimed_later(clock: Any) -> None:
    session = policy().session("s", clock=clock)
    assert not session.decide("slow", {}, id="c1").claimed
    clock.advance(29)
    assert session.decide("slow", {}, id="c1", claim=True).claimed
    clock.advance(29)
    assert session.complete("c1", "done").ok
    assert session.ledger.progress["calls_used"] == 1


# By id


@pytest.mark.parametrize("how", ["complete", "release", "suspend"])
def test_an_id_that_no_open_call_has_is_an_error_that_says_what_to_do(how: str, clock: Any) -> None:
    session = policy().session("s", clock=clock)
    session.complete(session.decide("look", {}, id="done"), 1)

    def tell(which: Any) -> None:
        session.complete(which, 1) if how == "complete" else getattr(session.calls, how)(which)

    for unknown in ("never", "done"):
        with pytest.raises(SessionError, match=f"no open calls have the id `{unknown}` in `s`: `decide` it first"):
            tell(unknown)
    with pytest.raises(SessionError, match="the decision is of the session `t`"):
        tell(policy().session("t").decide("look", {}))


@pytest.mark.parametrize("how", ["complete", "release"])
def test_open_calls_of_one_id_are_told_apart_by_their_arguments(how: str, clock: Any) -> None:
    store = MemoryStore()
    session = policy().session("s", clock=clock, store=store)
    session.decide("look", {"n": 1}, id="c1")
    session.decide("look", {"n": 2}, id="c1")

    def tell(**more: Any) -> None:
        session.complete("c1", "seen", **more) if how == "complete" else session.calls.release("c1", **more)

    with pytest.raises(SessionError, match="2 open calls have the id `c1` in `s`: `decide` it first, or say which"):
        tell()
    with pytest.raises(SessionError, match="no open calls have the id `c1` with these arguments"):
        tell(arguments={"n": 3})
    tell(arguments='{"n": 2.0}')
    assert [one.sig for one in state_of(store).pending.values()] == [session.decide("look", {"n": 1}, id="c1").call.sig]
    tell()
    assert not state_of(store).pending


def test_completed_by_id_it_is_as_if_completed_by_its_decision(clock: Any) -> None:
    """
    Of what is told by its id alone nobody can give the result back; all else is the same.
    """
    results: list[Any] = [{"rows": [1, 2], "took_ms": 5}, TimeoutError("slow"), Success("x", cost_usd=0.1), "", None]
    results += [Failed("rate limit exceeded"), "x" * 100_000, [], {"isError": True, "content": []}]
    states = []
    for by in ("decision", "id", "arguments"):
        store, sink = MemoryStore(), MemorySink()
        session = policy(Loops()).session("s", clock=clock, store=store, records=sink)
        session.extend(max_calls=99, max_cost_usd=99, max_tokens=99_999)
        for number, result in enumerate([*results, *results]):
            arguments = {"page": number}
            decision = session.decide("pay" if number % 2 else "look", arguments, id=f"c{number}")
            which, more = decision if by == "decision" else decision.call.id, {}
            if by == "arguments":
                more = {"arguments": arguments}
            clock.advance(1)
            session.complete(which, result, **more)
        clock.advance(-len(results) * 2)
        states.append(state_of(store))
        states[-1].run = ""
        records = [record for record in sink.records if record["event"] == "settle"]
        assert len(records) == len(results) * 2
    assert states[0] == states[2]
    for state in states:
        for entry in state.window:
            entry.steady = 0
    assert states[0] == states[1]


def test_a_result_is_kept_for_who_asks_again_if_the_arguments_are_told(clock: Any) -> None:
    session = Policy([Duplicates(rule="always")]).session("s", clock=clock)
    session.decide("look", {"n": 1}, id="c1")
    session.complete("c1", {"seen": 1}, arguments={"n": 1})
    assert '"previous_result":{"seen":1}' in session.call("look", {"n": 1}, never).to_json().replace(" ", "")


def test_a_call_that_its_host_has_stopped_is_made_again(clock: Any) -> None:
    store = MemoryStore()
    session = policy().session("s", clock=clock, store=store)
    decision = session.decide("pay", {"usd": 1}, id="c1", claim=True)
    session.calls.suspend(decision)
    session.calls.suspend("c1")
    clock.advance(3_600)
    assert session.decide("pay", {"usd": 1}, id="c1", claim=True).allowed
    assert session.complete("c1", "paid").ok
    session.calls.suspend(decision)
    assert used(state_of(store)) == (1, 1, 250_000, 10, 0, 0, 0, 0)


# What never ran


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.parametrize("by", ["decision", "id"])
def test_a_released_call_was_never_made(by: str, claim: bool, clock: Any) -> None:
    store, sink = MemoryStore(), MemorySink()
    made = policy()
    session = made.session("s", clock=clock, store=store, records=sink)
    decision = session.decide("pay", {"usd": 1}, id="c1", claim=claim)
    session.calls.release(decision if by == "decision" else "c1")
    assert used(state_of(store)) == (0, 0, 0, 0, 0, 0, 0, 0)
    assert session.call("pay", {"usd": 1}, lambda *_: "paid", id="c1").ok
    assert used(state_of(store)) == (1, 1, 250_000, 10, 0, 0, 0, 0)
    session.calls.release(decision)
    assert used(state_of(store)) == (1, 1, 250_000, 10, 0, 0, 0, 0)
    assert [record["event"] for record in sink.records] == ["call", "release", "call", "settle"]
    state = SessionState()
    assert all(one.same for one in replay(made.chain, sink.records, state))
    assert state == state_of(store)


def test_a_late_word_of_a_released_call_is_only_recorded(clock: Any) -> None:
    store = MemoryStore()
    session = policy().session("s", clock=clock, store=store)
    decision = session.decide("pay", {"usd": 1}, id="c1")
    session.calls.release(decision)
    again = session.decide("pay", {"usd": 1}, id="c1")
    assert session.complete(decision, "paid").ok
    assert used(state_of(store)) == (1, 1, 0, 0, 250_000, 10, 1, 0)
    session.calls.release(again)
    assert used(state_of(store)) == (0, 0, 0, 0, 0, 0, 0, 0)


def test_a_session_that_a_released_call_had_ended_goes_on(clock: Any) -> None:
    session = Policy([Budget(max_calls=2)]).session("s", clock=clock)
    first, second = session.decide("look", {"n": 1}, id="c1"), session.decide("look", {"n": 2}, id="c2")
    assert session.exhausted == "budget.max_calls"
    session.calls.release(first)
    assert session.tool_choice("auto") == "auto"
    assert session.decide("look", {"n": 3}, id="c3").allowed
    assert session.exhausted == "budget.max_calls"
    session.calls.release(second)
    session.calls.release("c3")
    assert session.ledger.progress == {"calls_used": 0, "calls_left": 2}


def test_limits_of_tools_get_back_what_never_ran(clock: Any) -> None:
    limits = {"budget": {"max_calls": 2, "max_cost_usd": 0.5}}
    session = Policy([], tools=TOOLS, rules=[Rule(match="pay", guards=limits)]).session("s", clock=clock)
    for turn in range(3):
        session.begin_turn(2)
        decisions = [session.decide("pay", {"turn": turn, "n": number}) for number in range(2)]
        assert all(decision.allowed for decision in decisions)
        for decision in decisions:
            session.calls.release(decision)
    assert [session.decide("pay", {"n": n}).code for n in range(3)] == [None, None, "tools.budget.max_calls"]


def test_a_released_call_is_no_evidence_and_no_part_of_a_streak(clock: Any) -> None:
    session = Policy([Duplicates(rule="always"), Streak(max_same=2), Loops()]).session("s", clock=clock)
    for _ in range(5):
        session.calls.release(session.decide("look", {"n": 1}))
    assert session.call("look", {"n": 1}, lambda *_: 1).ok
    session.calls.release(session.decide("look", {"n": 2}))
    assert session.call("look", {"n": 3}, lambda *_: 1).ok
    assert session.decide("look", {"n": 4}).code == "streak.max_same"


def test_a_released_question_to_a_person_is_withdrawn(clock: Any) -> None:
    store = MemoryStore()
    session = policy(Approve(tools=("pay",))).session("s", clock=clock, store=store)
    session.call("pay", {"usd": 1}, never, id="c1")
    session.calls.release("c1")
    assert session.pending() == []
    assert used(state_of(store)) == (0, 0, 0, 0, 0, 0, 0, 0)
    assert session.call("pay", {"usd": 1}, never, id="c1").code == "approve.pending"
    session.approve("c1")
    session.calls.release("c1")
    assert used(state_of(store)) == (0, 0, 0, 0, 0, 0, 0, 0)
    assert not any(one.question for one in state_of(store).pending.values())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_scopes_and_families_get_back_what_never_ran(kind: str, tmp_path: Path, clock: Any) -> None:
    store: Any = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    sink = MemorySink()
    ruled = [Rule(match="pay", guards={"budget": {"max_calls": 1}})]
    made = policy(scopes={"user": [Budget(max_calls=1, max_cost_usd=0.3)]}, rules=ruled)
    session = made.session("s", clock=clock, store=store, scopes={"user": "ada"}, records=sink)
    with session.child("kid", max_calls=1) as kid:
        for number in range(3):
            decision = kid.decide("pay", {"n": number})
            assert decision.allowed
            other = made.session(f"t{number}", clock=clock, store=store, scopes={"user": "ada"}, records=sink)
            assert other.decide("look", {}).code == "user.budget.max_calls"
            kid.calls.release(decision)
    assert session.ledger.progress["calls_used"] == 0
    assert session.call("pay", {"n": 9}, lambda *_: "paid").ok
    assert all(one.same for one in replay(made.chain, sink.records, scopes=made.scopes))
    if isinstance(store, SqliteStore):
        store.close()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.sampled_from(["pay", "look", "slow"]), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("turn"), st.integers(0, 2)),
        st.tuples(st.just("suspend"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 5.0])),
        st.tuples(st.just("release"), st.integers(0, 20)),
        st.tuples(st.just("complete"), st.integers(0, 20)),
    ),
    max_size=18,
)


@given(steps, st.randoms(use_true_random=False), st.booleans())
def test_what_is_held_is_the_same_everywhere_and_the_release_of_everything_returns_to_the_start(
    story: list[tuple[Any, ...]], order: Any, completes: bool
) -> None:
    clock, store, sink = Clock(), MemoryStore(), MemorySink()
    limits = {"budget": {"max_calls": 6, "max_cost_usd": 1.0}}
    made = Policy(
        [Budget(max_calls=12, max_cost_usd=2.0, max_tokens=1_000), Duplicates(), Rate(max_calls_per_second=100)],
        tools=TOOLS,
        rules=[Rule(match="pay", guards=limits)],
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
                clock.now += seconds
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
    assert not own.pending
    assert not scope.pending
    assert (own.held_cost, own.held_tokens, scope.reserved) == (0, 0, {})
    assert own.calls == scope.calls == done
    if not done:
        assert (own.turns, own.cost, own.tokens, own.present.admitted) == (0, 0, 0, 0)
        assert not any((own.own.get("tools.budget") or {}).values())
    assert all(one.same for one in replay(made.chain, sink.records, scopes=made.scopes))
