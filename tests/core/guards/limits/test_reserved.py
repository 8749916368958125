"""
Estimates that are held: of calls, of model requests, in families and scopes, for threads, tasks and processes.
"""

import threading

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, MemorySink, Policy, SessionError, SessionState, Success, Tool
from guardrails.core.guards.budget import held
from tests.conftest import FakeClock
from tests.core.guards.calls import make, ok
from tests.replaying import replay
from tests.tables import table


def used(session: Any, tokens: int, **said: Any) -> None:
    session.charge(model="m", usage={"prompt_tokens": tokens}, cost_usd=said.pop("cost_usd", 0), **said)


def live(session: Any) -> SessionState:
    found: SessionState = session.ledger.read(lambda state, _: state)
    return found


# Model requests


def test_20_parallel_requests_of_900_tokens_under_a_cap_of_1000_are_one(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=1_000))
    barrier = threading.Barrier(20)

    def ask(_: int) -> Any:
        barrier.wait()
        return session.request(tokens=900)

    with ThreadPoolExecutor(20) as pool:
        asked = list(pool.map(ask, range(20)))
    assert [each.allowed for each in asked].count(True) == 1
    refused = next(each for each in asked if not each.allowed)
    assert (refused.code, refused.message) == (
        "budget.max_tokens",
        "This model request is estimated at 900 tokens, 100 is left.",
    )
    assert not session.exhausted


def test_money_is_held_for_a_request_until_it_is_charged(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1), tools=[Tool(name="pay", cost_usd=0.5)])
    asked = session.request(cost_usd=0.6)
    assert session.ledger.progress["cost_left_usd"] == 0.4
    assert session.call("pay", {}, ok).limit_message == "This call is estimated at $0.50, $0.40 is left."
    used(session, 10, cost_usd=0.1, request=asked)
    assert session.ledger.progress["cost_left_usd"] == 0.9
    assert session.call("pay", {}, ok).ok


def test_a_request_that_fails_gives_back_what_it_holds(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=1_000))
    session.request(tokens=900).release()
    with session.request(tokens=900) as asked:
        assert asked.allowed
    with pytest.raises(ConnectionError), session.request(tokens=900):
        raise ConnectionError
    assert session.ledger.progress["tokens_left"] == 1_000


def test_a_request_that_nobody_settles_stays_held_after_its_time_and_is_corrected_by_its_charge(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=1_000))
    lost = session.request(tokens=900)
    clock.advance(599)
    assert not session.request(tokens=200).allowed
    clock.advance(2)
    assert not session.request(tokens=200).allowed
    assert (live(session).tokens, held(live(session))[1]) == (0, 900)
    used(session, 300, request=lost)
    assert (live(session).tokens, held(live(session))[1]) == (300, 0)
    assert session.request(tokens=200).allowed


def test_a_charge_settles_the_request_that_it_names_and_no_other(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=2_000))
    first = session.request(tokens=900)
    with session.request(tokens=900) as second:
        used(session, 900, request=second)
        assert (live(session).tokens, held(live(session))[1]) == (900, 900)
    assert held(live(session))[1] == 900
    assert not session.request(tokens=900).allowed
    used(session, 900)
    assert (live(session).tokens, held(live(session))[1]) == (1_800, 0)
    first.release()
    assert live(session).tokens == 1_800


def test_a_charge_of_another_session_settles_nothing_of_the_block_around_it(clock: Any) -> None:
    session, other = make(clock, Budget(max_tokens=2_000)), Policy([Budget(max_tokens=500)]).session("o", clock=clock)
    other.request(tokens=300)
    with session.request(tokens=900):
        used(other, 100)
        assert (held(live(other))[1], held(live(session))[1]) == (0, 900)


def test_requests_of_unknown_size_are_held_by_the_average_so_far(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=10_000))
    for tokens in (800, 1_000):
        session.request()
        used(session, tokens)
    asked = [session.request() for _ in range(20)]
    assert [each.allowed for each in asked] == [True] * 9 + [False] * 11
    # Of a guess the first is made all the same, however little is left.
    for each in asked[:9]:
        used(session, 900, request=each)
    assert session.ledger.progress["tokens_left"] == 100
    assert [session.request().allowed for _ in range(3)] == [True, False, False]


@table("turns", [False, True])
def test_guesses_refuse_no_call_and_end_with_their_turn(turns: bool, clock: Any) -> None:
    session = make(clock, Budget(max_tokens=1_000), tools=[Tool(name="ask", tokens=300)])
    used(session, 300)
    for _ in range(30):
        assert session.request().allowed or not turns
        if turns:
            session.begin_turn(1)
    assert turns is (held(live(session), guesses=True) == (0, 0))
    assert session.call("ask", {}, ok).ok
    assert session.ledger.progress["tokens_left"] == 400


@table("said", [{"tokens": -1}, {"tokens": 1.5}, {"tokens": True}, {"cost_usd": "much"}])
def test_what_is_no_amount_is_no_estimate(said: Any, clock: Any) -> None:
    session = make(clock, Budget(max_tokens=9))
    with pytest.raises(SessionError, match=f"`{next(iter(said))}` takes"):
        session.request(**said)
    assert live(session) == SessionState()


def test_a_scope_holds_what_its_sessions_have_asked_for(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_tokens=1_000)]}), MemorySink()
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, clock=clock, records=sink) for n in range(3)]
    asked = [session.request(tokens=450) for session in sessions]
    assert [each.allowed for each in asked] == [True, True, False]
    assert asked[2].code == "user.budget.max_tokens"
    asked[0].release()
    used(sessions[1], 100, request=asked[1])
    assert sessions[2].request(tokens=900).allowed
    assert all(again.same for again in replay(policy.chain, sink.records, scopes=policy.scopes))


# Calls


def test_tokens_of_a_tool_are_reserved_and_settled_by_what_it_used(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=1_000), tools=[Tool(name="t", tokens=400)])
    decisions = [session.decide("t", {"n": n}, id=f"call_{n}") for n in range(5)]
    assert [decision.allowed for decision in decisions] == [True, True, False, False, False]
    assert decisions[2].denial.message == "This call is estimated at 400 tokens, 200 is left."
    session.complete(decisions[0], Success("ok", tokens=100))
    session.complete(decisions[1], "ok")
    assert session.ledger.progress["tokens_left"] == 500


# Children


def spend(parent: Any, name: str, ran: Callable[[], object]) -> None:
    """
    Work by one sub-agent after the other, each with a call of the budget, until nothing is left.
    """
    for number in range(2_000):
        try:
            with parent.child(f"{name}-{number}", max_calls=1) as child:
                for n in range(3):
                    child.call("t", {"n": n}, lambda *_: ran() or "ok")
        except SessionError:
            if parent.exhausted:
                return


@pytest.mark.usefixtures("quick_switches")
@table(("limit", "children"), [(3, 2), (5, 4), (9, 8)])
def test_parallel_children_in_threads_admit_exactly_the_limit(limit: int, children: int, clock: Any) -> None:
    parent = make(clock, Budget(max_calls=limit, max_tokens=limit * 10), tools=[Tool(name="t", tokens=10)])
    ran: list[int] = []
    with ThreadPoolExecutor(children) as pool:
        list(pool.map(lambda name: spend(parent, str(name), lambda: ran.append(1)), range(children)))
    assert len(ran) == limit
    assert (live(parent).calls, live(parent).tokens, live(parent).held_tokens) == (limit, limit * 10, 0)


# Laws

PART, ANY = st.integers(0, 9), st.integers(0, 100)
steps = st.lists(
    st.tuples(st.just("request"), st.integers(0, 60), st.none())
    | st.tuples(st.sampled_from(["charge", "release", "settle"]), PART, ANY)
    | st.tuples(st.just("call"), st.sampled_from([0, 20, 50]), st.none())
    | st.tuples(st.just("wait"), st.sampled_from([1, 400, 700]), st.none()),
    max_size=30,
)


@given(steps=steps, named=st.booleans())
def test_a_cap_is_never_exceeded_where_estimates_are_not(steps: list[Any], named: bool) -> None:
    """
    Whatever order requests, charges and calls come in: what was really used is at most the cap, of tokens and of money.
    """
    clock, sink, cap = FakeClock(), MemorySink(), 100
    tools = [Tool(name=f"t{tokens}", tokens=tokens, cost_usd=tokens / 1_000_000) for tokens in (0, 20, 50)]
    policy = Policy([Budget(max_tokens=cap, max_cost_usd=cap / 1_000_000)], tools=tools)
    session = policy.session("s", clock=clock, records=sink)
    requests: list[tuple[Any, int]] = []
    calls: list[tuple[Any, int]] = []
    spent = 0
    for number, (what, a, share) in enumerate(steps):
        if what == "request":
            asked = session.request(tokens=a, cost_usd=a / 1_000_000)
            requests += [(asked, a)] if asked.allowed else []
        elif what == "call":
            decision = session.decide(f"t{a}", {"n": number}, id=str(number))
            calls += [(decision, a)] if decision.allowed else []
        elif what == "wait":
            clock.advance(a)
        elif opened := calls if what == "settle" else requests:
            one, estimate = opened.pop(a % len(opened))
            actual = 0 if what == "release" else estimate * (share or 0) // 100
            spent += actual
            if what == "settle":
                session.complete(one, Success("ok", tokens=actual, cost_usd=actual / 1_000_000))
            elif what == "charge":
                used(session, actual, cost_usd=actual / 1_000_000, **({"request": one} if named else {}))
            else:
                one.release()
        state = live(session)
        assert spent <= cap
        assert min(state.held_cost, state.held_tokens, state.tokens, state.cost) >= 0
    again = SessionState()
    assert all(each.same for each in replay(policy.chain, sink.records, again))
    assert again == live(session)


def test_of_many_requests_that_nobody_settles_the_oldest_are_forgotten(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=10**9))
    for _ in range(300):
        session.request(tokens=1)
    state = live(session)
    assert (len(state.own["budget"]["holds"]), held(state)[1]) == (256, 256)
