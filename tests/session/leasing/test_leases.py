"""
Workers that hold parts of what their sessions share: nothing is admitted that is not the scope's, and all of it can be used.
"""

import threading

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Lease,
    Leases,
    MemoryStore,
    Policy,
    PolicyError,
    Rate,
    SessionError,
    SqliteStore,
    StoreError,
    Success,
    Tool,
)
from guardrails.core.values.usage import Usage
from guardrails.session.session import Session
from guardrails.stores.base import Store
from tests.stores import redis_server


SCOPE = {"tenant": "acme"}
Shared = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=redis_server.needed)])
def shared(request: Any, tmp_path: Path) -> Store:
    if request.param == "redis":
        made: Store = redis_server.in_redis()
        return made
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "state.db")


def worker(shared: Store, clock: Any) -> Leases:
    return Leases(shared, clock=clock, timer=clock, look=None)


def policy(*, lost: Any = "burn", time: float = 30, tools: Any = (), **limits: Any) -> Policy:
    return Policy([], tools=tools, scopes={"tenant": [Budget(**limits), Lease(lost=lost, time=time)]})


def ran(*_: Any) -> str:
    return "ran"


def of(policy: Policy, store: Leases, clock: Any, name: str = "s") -> Session:
    return policy.session(name, scopes=SCOPE, store=store, clock=clock)


def spend(session: Session, times: int) -> Counter[str]:
    return Counter(session.call("t", {"n": number}, ran).code or "ran" for number in range(times))


def test_a_call_is_admitted_without_a_trip_once_a_part_is_held(shared: Store, clock: Any) -> None:
    store = worker(shared, clock)
    session = of(policy(max_calls=10_000), store, clock)
    spend(session, 1)
    before = store.trips
    assert spend(session, 38) == {"ran": 38}
    assert store.trips == before


def test_what_is_granted_is_debited_at_once(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=1_000)
    spend(of(rules, worker(shared, clock), clock), 1)
    plain = rules.session("other", scopes=SCOPE, store=shared, clock=clock)
    assert plain.progress["calls_left"] == 1_000 - 3


@given(limit=st.integers(0, 60), workers=st.integers(1, 5), order=st.lists(st.integers(0, 4), max_size=150))
def test_all_of_the_limit_is_used_and_nothing_more(limit: int, workers: int, order: list[int]) -> None:
    now = [1_800_000_000.0]
    rules, common = policy(max_calls=limit), MemoryStore()
    stores = [worker(common, lambda: now[0]) for _ in range(workers)]
    sessions = [of(rules, store, lambda: now[0], f"s{number}") for number, store in enumerate(stores)]
    admitted = 0
    for number, which in enumerate(order):
        admitted += sessions[which % workers].call("t", {"n": number}, ran).ok
        assert admitted <= limit
    for number in range(300):
        asked = sessions[number % workers].call("t", {"more": number}, ran)
        admitted += asked.ok
        assert asked.ok or asked.code in ("tenant.budget.max_calls", "tenant.budget.leased_elsewhere")
        now[0] += 0.1
        for store in stores:
            store.tend()
    assert admitted == limit
    assert all(session.exhausted_by == "tenant.budget.max_calls" for session in sessions)


@given(cents=st.integers(0, 40), order=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=80))
def test_money_that_is_estimated_well_is_never_over(cents: int, order: list[tuple[int, int]]) -> None:
    now = [1_800_000_000.0]
    tools = [Tool(name=f"pay_{price}", cost_usd=price / 100) for price in range(1, 10)]
    rules, common = policy(max_cost_usd=cents / 100, tools=tools), MemoryStore()
    stores = [worker(common, lambda: now[0]) for _ in range(3)]
    sessions = [of(rules, store, lambda: now[0], f"s{number}") for number, store in enumerate(stores)]
    paid = 0
    for number, (which, price) in enumerate([*order, *[(number % 3, 1) for number in range(150)]]):
        paid += price * sessions[which].call(f"pay_{price}", {"n": number}, ran).ok
        assert paid <= cents
        now[0] += 0.1
        for store in stores:
            store.tend()
    assert paid == cents


def test_a_part_that_another_worker_needs_is_recalled(shared: Store, clock: Any) -> None:
    rules = policy(max_cost_usd=1.0, tools=[Tool(name="t", cost_usd=0.4)])
    one, two = worker(shared, clock), worker(shared, clock)
    first, second = of(rules, one, clock, "a"), of(rules, two, clock, "b")
    assert first.call("t", {"n": 1}, lambda *_: Success("cheap", cost_usd=0.0)).ok
    assert second.call("t", {"n": 1}, ran).ok
    # One holds 0.4 that it has not used: 0.2 is nobody's.
    refused = second.call("t", {"n": 2}, ran)
    assert (refused.code, refused.retryable, refused.retry_after_ms) == ("tenant.budget.leased_elsewhere", True, 100)
    assert not second.exhausted
    trips = two.trips
    assert second.call("t", {"n": 2}, ran).code == "tenant.budget.leased_elsewhere"
    assert two.trips == trips, "it asks again after 100 ms only"
    one.tend()
    clock.advance(0.1)
    assert second.call("t", {"n": 2}, ran).ok
    clock.advance(0.1)
    assert second.call("t", {"n": 3}, ran).code == "tenant.budget.max_cost_usd"


def test_a_part_that_nobody_uses_comes_back(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=1_000)
    store = worker(shared, clock)
    spend(of(rules, store, clock), 1)
    plain = rules.session("other", scopes=SCOPE, store=shared, clock=clock)
    clock.advance(5)
    store.tend()
    assert plain.progress["calls_left"] == 997
    clock.advance(11)
    store.tend()
    assert plain.progress["calls_left"] == 999


def test_a_burst_waits_seconds_for_an_unused_part_however_long_a_lease_may_be_silent(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=1_000, time=3_600)
    one, two = worker(shared, clock), worker(shared, clock)
    first, second = of(rules, one, clock, "a"), of(rules, two, clock, "b")
    for calls in [5] * 80 + [1] * 60:
        assert spend(first, calls) == {"ran": calls}
        clock.advance(1)
        one.tend()
    ran, waited = spend(second, 540)["ran"], 0
    assert ran < 540, "the first holds a part of it"
    while ran < 540 and waited < 11:
        clock.advance(1)
        waited += 1
        one.tend()
        ran += spend(second, 540 - ran)["ran"]
    assert ran == 540


def test_closing_gives_back_what_was_not_used(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=1_000)
    store = worker(shared, clock)
    session = of(rules, store, clock)
    spend(session, 2)
    store.close()
    plain = rules.session("other", scopes=SCOPE, store=shared, clock=clock)
    assert plain.progress["calls_left"] == 998
    assert spend(session, 1) == {"ran": 1}, "whoever goes on has a new lease"


@pytest.mark.parametrize(("lost", "left"), [("burn", 997), ("return", 1_000)])
def test_the_part_of_a_lost_worker(shared: Store, clock: Any, lost: str, left: int) -> None:
    rules = policy(max_calls=1_000, lost=lost)
    gone, other = worker(shared, clock), worker(shared, clock)
    spend(of(rules, gone, clock), 2)
    waiting = of(rules, other, clock, "b")
    plain = rules.session("plain", scopes=SCOPE, store=shared, clock=clock)
    assert spend(waiting, 1) == {"ran": 1}
    for _ in range(12):
        clock.advance(3)
        other.tend()
    other.close()
    assert plain.progress["calls_left"] == left - 1


def test_a_worker_that_was_taken_for_lost_goes_on_with_a_new_lease(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=100)
    slept, other = worker(shared, clock), worker(shared, clock)
    session = of(rules, slept, clock)
    spend(session, 1)
    spend(of(rules, other, clock, "b"), 1)
    for _ in range(12):
        clock.advance(3)
        other.tend()
    slept.tend()
    admitted = 1 + 1 + spend(session, 200)["ran"]
    other.tend()
    assert admitted <= 100
    assert session.exhausted_by == "tenant.budget.max_calls"


def test_a_call_that_is_open_while_its_worker_is_taken_for_lost_stays_charged(shared: Store, clock: Any) -> None:
    rules = policy(max_cost_usd=10.0, lost="return", tools=[Tool(name="pay", cost_usd=1.0)])
    slept, other = worker(shared, clock), worker(shared, clock)
    session, waiting = of(rules, slept, clock), of(rules, other, clock, "b")
    spend(waiting, 1)
    opened = session.decide("pay", {"to": "ann"})
    for number in range(80):
        clock.advance(1)
        waiting.call("t", {"wait": number}, ran)
        other.tend()
    session.complete(opened, Success("paid", cost_usd=1.0))
    slept.close()
    other.close()
    plain = rules.session("plain", scopes=SCOPE, store=shared, clock=clock)
    assert plain.progress["cost_left_usd"] == 9.0


def test_what_costs_more_than_was_thought_is_taken_at_once(shared: Store, clock: Any) -> None:
    rules = policy(max_cost_usd=10.0, tools=[Tool(name="t", cost_usd=0.01)])
    store = worker(shared, clock)
    session = of(rules, store, clock)
    session.call("t", {}, lambda *_: Success("dear", cost_usd=7.0))
    plain = rules.session("plain", scopes=SCOPE, store=shared, clock=clock)
    assert plain.progress["cost_left_usd"] <= 3.0
    session.call("t", {"n": 2}, lambda *_: Success("dear", cost_usd=7.0))
    assert plain.exhausted_by == session.exhausted_by == "tenant.budget.max_cost_usd"


def test_model_responses_are_charged_to_the_scope(shared: Store, clock: Any) -> None:
    rules = policy(max_tokens=1_000)
    one, two = worker(shared, clock), worker(shared, clock)
    first, second = of(rules, one, clock, "a"), of(rules, two, clock, "b")
    first.charge(model="m", usage=Usage(500, 100), cost_usd=0)
    assert second.progress["tokens_left"] <= 400
    second.charge(model="m", usage=Usage(500, 100), cost_usd=0)
    assert second.exhausted_by == "tenant.budget.max_tokens"
    clock.advance(0.2)
    assert first.call("t", {}, ran).code == "tenant.budget.max_tokens"


def test_a_limit_that_is_raised_is_raised_for_all_workers(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=3)
    one, two = worker(shared, clock), worker(shared, clock)
    first, second = of(rules, one, clock, "a"), of(rules, two, clock, "b")
    spend(first, 4)
    assert second.exhausted_by == "tenant.budget.max_calls"
    first.extend(scope="tenant", max_calls=2)
    clock.advance(0.2)
    assert spend(second, 1) == {"ran": 1}
    with pytest.raises(SessionError, match="max_tokens"):
        first.extend(scope="tenant", max_tokens=2)


def test_children_count_in_the_scope_of_their_parent(shared: Store, clock: Any) -> None:
    rules = Policy([Budget(max_calls=50)], scopes={"tenant": [Budget(max_calls=3), Lease()]})
    session = of(rules, worker(shared, clock), clock)
    with session.child("sub", max_calls=10) as child:
        assert spend(child, 5) == {"ran": 3, "tenant.budget.max_calls": 2}
    assert session.exhausted_by == "tenant.budget.max_calls"


def test_a_response_without_a_price_ends_the_sessions_of_all_workers(shared: Store, clock: Any) -> None:
    rules = policy(max_cost_usd=10.0)
    one, two = worker(shared, clock), worker(shared, clock)
    first, second = of(rules, one, clock, "a"), of(rules, two, clock, "b")
    spend(second, 1)
    first.charge(model="unheard-of", usage=Usage(500, 100))
    assert first.exhausted_by == "tenant.budget.unpriced"
    clock.advance(15)
    two.tend()
    assert second.exhausted_by == "tenant.budget.unpriced"


def test_threads_share_one_lease(shared: Store, clock: Any, quick_switches: None) -> None:
    rules = policy(max_calls=300)
    store = worker(shared, clock)
    found: list[Counter[str]] = []

    def work(number: int) -> None:
        found.append(spend(of(rules, store, clock, f"s{number}"), 100))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum((each["ran"] for each in found), 0) == 300
    leases: int = shared.update(["/tenant/acme"], lambda states: len(states[0].leases))
    assert leases == 1


class Failing(MemoryStore):
    """
    A store that may be out of reach.
    """

    broken = False

    def update(self, keys: Any, step: Any) -> Any:
        if self.broken:
            raise StoreError("out of reach")
        return super().update(keys, step)


def test_calls_go_on_by_the_part_while_the_shared_store_is_out_of_reach(clock: Any) -> None:
    shared = Failing()
    store = worker(shared, clock)
    session = of(policy(max_calls=10_000), store, clock)
    spend(session, 1)
    shared.broken = True
    assert spend(session, 50) == {"ran": 38, "store.error": 12}
    shared.broken = False
    assert spend(session, 1) == {"ran": 1}


def test_a_store_that_is_out_of_reach_is_asked_once_a_second_and_not_at_every_look(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shared = Failing()
    store = worker(shared, clock)
    spend(of(policy(max_calls=100), store, clock), 1)
    clock.advance(30)
    shared.broken = True
    for _ in range(41):
        store.tend()
        clock.advance(0.25)
    assert caplog.text.count("store failed: out of reach") == 11


def test_a_store_that_fails_as_leases_are_closed_is_logged_and_what_was_held_is_lost(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shared = Failing()
    store = worker(shared, clock)
    spend(of(policy(max_calls=10_000), store, clock), 1)
    shared.broken = True
    store.close()
    assert "store failed: out of reach" in caplog.text
    shared.broken = False
    assert shared.update(["/tenant/acme"], lambda states: len(states[0].leases)) == 1


def test_a_trip_whose_answer_was_lost_loses_nothing(clock: Any) -> None:
    class Deaf(MemoryStore):
        deaf = False

        def update(self, keys: Any, step: Any) -> Any:
            made = super().update(keys, step)
            if self.deaf:
                raise StoreError("no answer")
            return made

    shared = Deaf()
    session = of(policy(max_calls=50), worker(shared, clock), clock)
    spend(session, 1)
    shared.deaf = True
    spend(session, 3)
    shared.deaf = False
    assert 1 + spend(session, 100)["ran"] + 0 <= 50
    assert session.progress["calls_left"] == 0


def test_a_lease_is_for_budgets_alone() -> None:
    with pytest.raises(PolicyError) as error:
        Policy([], scopes={"tenant": [Budget(max_elapsed=60), Rate(max_calls_per_minute=5), Lease()]})
    assert len(error.value.mistakes) == 3


def test_a_session_over_leases_has_no_scope_without_one(clock: Any) -> None:
    rules = Policy([], scopes={"tenant": [Budget(max_calls=5)]})
    with pytest.raises(SessionError, match="no `lease`"):
        of(rules, worker(MemoryStore(), clock), clock)


def both_at_work(shared: Store, clock: Any, lost: str) -> tuple[list[Leases], list[Session]]:
    """
    Two workers with parts, each of which knows how often the other was heard of.
    """
    stores = [worker(shared, clock), worker(shared, clock)]
    rules = policy(max_calls=1_000, lost=lost)
    sessions = [of(rules, store, clock, str(number)) for number, store in enumerate(stores)]
    for session in (*sessions, *sessions, *sessions):
        spend(session, 20)
    for _ in range(2):
        sessions[0].extend(scope="tenant", max_calls=1)
    return stores, sessions


@pytest.mark.parametrize("lost", ["burn", "return"])
@pytest.mark.parametrize("how", ["asleep", "asleep, and looks first", "out of reach"])
def test_nobody_is_lost_while_all_were_asleep_or_the_store_out_of_reach(clock: Any, lost: str, how: str) -> None:
    shared = Failing()
    stores, sessions = both_at_work(shared, clock, lost)
    if how == "out of reach":
        shared.broken = True
        for _ in range(100):
            clock.advance(1)
            for store in stores:
                store.tend()
        shared.broken = False
    else:
        clock.advance(100)
        if "looks" in how:
            stores[0].tend()
    admitted = 120 + spend(sessions[0], 300)["ran"]
    for number in range(2_000):
        admitted += spend(sessions[number % 2], 1)["ran"]
        clock.advance(0.1)
        for store in stores:
            store.tend()
    assert admitted == 1_002


def test_a_worker_that_slept_admits_nothing_of_a_part_that_others_have_got_back(shared: Store, clock: Any) -> None:
    (_, awake), (slept, other) = both_at_work(shared, clock, "return")
    for _ in range(40):
        clock.advance(1)
        awake.tend()
    admitted = 120 + spend(other, 2_000)["ran"] + spend(slept, 50)["ran"]
    for _ in range(100):
        clock.advance(0.1)
        awake.tend()
        admitted += spend(slept, 1)["ran"] + spend(other, 1)["ran"]
    assert admitted <= 1_002


def test_a_worker_without_leases_is_told_that_others_hold_what_is_left(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=100, max_cost_usd=1.0, tools=[Tool(name="dear", cost_usd=0.95)])
    spend(of(rules, worker(shared, clock), clock), 40)
    plain = rules.session("plain", scopes=SCOPE, store=shared, clock=clock)
    while (said := plain.call("t", {"left": plain.progress["calls_left"]}, ran)).ok:
        pass
    assert (said.code, said.retryable, said.retry_after_ms) == ("tenant.budget.leased_elsewhere", True, 100)
    assert not plain.exhausted


def test_a_scope_that_nobody_uses_any_more_takes_no_room_and_no_time(shared: Store, clock: Any) -> None:
    rules, store = policy(max_calls=3), worker(shared, clock)
    for number in range(20):
        with rules.session(f"s{number}", scopes={"tenant": str(number % 10)}, store=store, clock=clock) as session:
            spend(session, 2)
        session.forget()
    for _ in range(10):
        clock.advance(10)
        store.tend()
    before = store.trips
    store.tend()
    assert (len(store), store.trips) == (0, before)
    assert shared.update(["/tenant/3"], lambda states: (states[0].calls, len(states[0].leases))) == (3, 0)
    again = rules.session("s", scopes={"tenant": "3"}, store=store, clock=clock)
    assert spend(again, 1) == {"tenant.budget.max_calls": 1}
    again.extend(scope="tenant", max_calls=1)
    assert spend(again, 2) == {"ran": 1, "tenant.budget.max_calls": 1}


def test_leases_that_were_lost_take_no_room_and_no_time_either(shared: Store, clock: Any) -> None:
    rules, store = policy(max_calls=100), worker(shared, clock)
    for number in range(20):
        session = rules.session("s", scopes={"tenant": str(number)}, store=store, clock=clock)
        spend(session, 3)
        session.forget()
        shared.forget(f"/tenant/{number}")
    for _ in range(10):
        clock.advance(10)
        store.tend()
    assert (len(store), len(store._leases)) == (0, 0)
    assert spend(session, 3) == {"ran": 3}, "who comes again gets another"


def test_who_asks_seldom_gets_what_a_lost_worker_held(shared: Store, clock: Any) -> None:
    rules = policy(max_calls=10, lost="return")
    spend(of(rules, worker(shared, clock), clock), 3)
    store = worker(shared, clock)
    seldom, ran = of(rules, store, clock, "seldom"), 0
    for number in range(2_400):
        ran += number % 120 == 0 and spend(seldom, 1)["ran"]
        clock.advance(1)
        store.tend()
    assert ran >= 7
