"""
What every store must do, run over each of them.
"""

import atexit
import os
import signal
import sqlite3
import threading
import warnings

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Growth, Policy
from guardrails.core.engine import Engine
from guardrails.core.packing import VERSION, unpack
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable
from guardrails.stores import Listed
from guardrails.stores.memory import MemoryStore
from guardrails.stores.postgres import PostgresStore
from guardrails.stores.redis import RedisStore
from guardrails.stores.sqlite import SqliteStore
from tests.stores.mapped import MappedStore
from tests.stores.postgres_server import in_postgres
from tests.stores.postgres_server import shared as shared_postgres
from tests.stores.redis_server import in_redis, shared


KEPT = Path(__file__).parents[1] / "golden/0.2.0/state.bin"


FOLDER = Path(mkdtemp(prefix="guardrails-stores-"))
atexit.register(rmtree, FOLDER, ignore_errors=True)


def in_a_file(**settings: Any) -> Listed:
    return SqliteStore(FOLDER / f"{os.urandom(8).hex()}.db", **settings)


STORES: dict[str, Callable[[], Listed]] = {
    "memory": MemoryStore,
    "memory, one live": lambda: MemoryStore(live=1),
    "mapped, of one's own": lambda: MappedStore({}),
    "sqlite": in_a_file,
    "sqlite, none live": lambda: in_a_file(live=0),
    "redis": in_redis,
    "redis, none live": lambda: in_redis(live=0),
    "postgres": in_postgres,
    "postgres, none live": lambda: in_postgres(live=0),
}

made = pytest.mark.parametrize("make", STORES.values(), ids=STORES.keys())


def spend(amount: int) -> Callable[[list[SessionState]], list[int]]:
    def step(states: list[SessionState]) -> list[int]:
        for state in states:
            state.calls += 1
            state.cost += amount
        return [state.calls for state in states]

    return step


def cost(store: Listed, key: str) -> int:
    return store.update([key], lambda states: states[0].cost)


@made
def test_a_forgotten_key_starts_afresh_and_the_others_stay(make: Callable[[], Listed]) -> None:
    store = make()
    for key in ("a", "b", "c"):
        store.update([key], spend(3))
    store.forget("a")
    store.forget("b")
    store.forget("never there")
    assert (len(store), cost(store, "c"), cost(store, "a")) == (1, 3, 0)


@made
def test_a_step_that_raises_lets_the_error_out_and_the_next_one_in(make: Callable[[], Listed]) -> None:
    store = make()

    def fails(states: list[SessionState]) -> None:
        raise ZeroDivisionError

    for keys in (["new"], ["new", "other"]):
        with pytest.raises(ZeroDivisionError):
            store.update(keys, fails)
    assert store.update(["new", "other"], spend(1)) == [1, 1]


@made
@given(story=st.lists(st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, unique=True), st.integers(0, 9))))
def test_states_that_come_and_go_are_as_if_they_had_always_been_there(
    make: Callable[[], Listed], story: list[tuple[list[str], int]]
) -> None:
    store = make()
    expected = {key: SessionState() for key in "abcd"}
    for keys, amount in story:
        told = store.update(keys, spend(amount))
        assert told == spend(amount)([expected[key] for key in keys])
    for key, state in expected.items():
        assert store.update([key], lambda states: states[0]) == state
    assert len(store) == len(expected)


@made
def test_threads_that_switch_every_microsecond_lose_no_update(make: Callable[[], Listed], quick_switches: None) -> None:
    store = make()

    def work(own: str) -> None:
        for _ in range(100):
            store.update(["shared", own], spend(1))

    run_all([threading.Thread(target=work, args=(f"own {number}",)) for number in range(8)])
    assert cost(store, "shared") == 800
    assert [cost(store, f"own {number}") for number in range(8)] == [100] * 8


@made
def test_what_moves_between_two_keys_is_never_seen_half_way(make: Callable[[], Listed], quick_switches: None) -> None:
    store = make()
    store.update(["a", "b"], spend(1_000))
    seen: set[int] = set()

    def move(amount: int) -> None:
        def step(states: list[SessionState]) -> None:
            states[0].cost -= amount
            states[1].cost += amount

        for _ in range(200):
            store.update(["a", "b"], step)

    def look() -> None:
        for _ in range(200):
            seen.add(store.update(["b", "a"], lambda states: states[0].cost + states[1].cost))

    run_all([threading.Thread(target=move, args=(1,)), threading.Thread(target=move, args=(-1,))])
    run_all([threading.Thread(target=move, args=(3,)), threading.Thread(target=look), threading.Thread(target=look)])
    assert seen == {2_000}
    assert cost(store, "a") == 400


@pytest.mark.system
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@made
def test_a_forked_process_can_go_on_while_a_thread_of_its_parent_is_in_an_update(make: Callable[[], Listed]) -> None:
    store = make()
    store.update(["a"], spend(1))
    inside, leave = threading.Event(), threading.Event()

    def wait(states: list[SessionState]) -> Any:
        inside.set()
        # A store may let a fork wait until the update is over.
        return leave.wait(0.3)

    thread = threading.Thread(target=store.update, args=(["b"], wait))
    thread.start()
    inside.wait(10)
    with warnings.catch_warnings():
        # Later Pythons warn of the very thing this test is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(0 if store.update(["a"], spend(1)) == [2] else 1)
    leave.set()
    thread.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # A file, or a server, is shared with the child, memory is not.
    assert cost(store, "a") == (1 if isinstance(store, MemoryStore | MappedStore) else 2)


@made
@pytest.mark.parametrize("nested", ["update", "forget"])
def test_a_step_that_asks_its_own_store_is_told_so_and_hangs_nothing(make: Callable[[], Listed], nested: str) -> None:
    store = make()
    store.update(["a"], spend(1))

    def asks(states: list[SessionState]) -> Any:
        return store.update(["b"], spend(1)) if nested == "update" else store.forget("a")

    with pytest.raises(RuntimeError, match="from inside of its own store's update"):
        store.update(["a"], asks)
    assert store.update(["a"], spend(1)) == [2]


def in_family(store: Listed, child: str, step: Callable[[list[SessionState]], Any], *users: str) -> Any:
    """
    What *step* makes of the states of the *child* of `root`, and of those of *users*.
    """
    chain = Policy([Growth(max_calls_per_second=99)]).chain
    engine = Engine(chain, child, scopes=[("user", user, chain) for user in users], child=True)
    return store.update(
        [child, *(f"/user/{user}" for user in users), "root"],
        lambda states: engine.apply(lambda at: step([at.state, *(one.state for one in at.scopes)]), 0, states),
    )


@made
def test_a_family_shares_its_counters_and_nothing_else(make: Callable[[], Listed]) -> None:
    store = make()

    def count(states: list[SessionState]) -> tuple[int, int]:
        state = states[0]
        state.n += 1
        state.calls += 1
        state.own["growth"] = {"calls": state.own.get("growth", {"calls": 0})["calls"] + 1}
        return state.calls, state.own["growth"]["calls"]

    seen = [store.update(["root"], count), *(in_family(store, key, count) for key in ("root/a", "root/b"))]
    assert seen == [(1, 1), (1, 2), (1, 3)]
    assert store.update(["root/a"], lambda states: states[0].own) == {}
    assert store.update(["root", "root/b"], lambda states: [state.shared for state in states]) == [2, 0]


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def put(store: Listed, key: str, packed: bytes) -> None:
    """
    Write *packed* as it is into *store*, as another version of the library would have.
    """
    match store:
        case MemoryStore():
            store._live.pop(key, None)
            store._idle[key] = packed
        case MappedStore():
            store.states[key] = packed
        case SqliteStore():
            store.update([key], spend(1))
            with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
                database.execute("UPDATE states SET state = ? WHERE key = ?", (packed, key))
        case RedisStore():
            store.update([key], spend(1))
            shared().ask("HSET", f"{{{store.namespace}}}:h:{key}", "v", "of another", "s", packed)
        case PostgresStore():
            store.update([key], spend(1))
            shared_postgres().ask(f"UPDATE {store._table} SET state = %s WHERE key = %s", packed, key.encode())
        case _:
            pytest.fail("how to write into this store is not known")


@made
def test_what_is_kept_is_listed_each_once_and_by_what_its_key_begins_with(make: Callable[[], Listed]) -> None:
    store = make()
    keys = {f"{kind}-{n}" for kind in ("trip", "täxi", "trip%", "tri_") for n in range(7)}
    keys |= {"/user/u1", "/tenant/a", "trip", "a b", "a\nb", "{x}y", "s:a", "a\0b", "日本", "x" * 500}
    for key in sorted(keys):
        store.update([key], spend(3))
    assert sorted(one.key for one in store.entries()) == sorted(keys)
    for prefix in ("trip", "trip%", "tri_", "/", "/user/", "tä", "none", "trip-6"):
        listed = [one.key for one in store.entries(prefix)]
        assert sorted(listed) == sorted(key for key in keys if key.startswith(prefix))
    assert all(unpack(one.packed).cost == 3 for one in store.entries())


@made
def test_one_is_read_as_it_is_kept_and_a_look_makes_none(make: Callable[[], Listed]) -> None:
    store = make()
    assert store.read("a") is None
    assert list(store.entries()) == []
    store.update(["a"], spend(5))
    found = store.read("a")
    assert found is not None
    assert (found.key, unpack(found.packed).cost) == ("a", 5)
    assert [*store.entries()] == [found]
    for other in ("b", "", "a\ud800", "a\0", "A"):
        assert store.read(other) is None
    assert [*store.entries("a\ud800")] == [*store.entries("a\0")] == []
    assert len(store) == 1


@made
@pytest.mark.parametrize("keys", [["a"], ["b", "a"], ["a", "b"]])
def test_a_newer_state_is_refused_in_words_and_stays_as_it_is(make: Callable[[], Listed], keys: list[str]) -> None:
    """
    What a process of this version does that meets a state of the next.
    """
    store, newer = make(), bytes([VERSION + 1]) + b"of another time"
    store.update(["b"], spend(1))
    put(store, "a", newer)
    with pytest.raises(StateUnreadable, match=f"is of version {VERSION + 1}, and this version of the library reads"):
        store.update(keys, spend(1))
    assert {one.key: one.packed for one in store.entries()}["a"] == newer
    assert cost(store, "b") == 1
    store.forget("a")
    assert store.read("a") is None


@made
def test_a_state_that_0_2_0_packed_goes_on_in_any_store(make: Callable[[], Listed], clock: Any) -> None:
    store, packed = make(), KEPT.read_bytes()
    put(store, "s", packed)
    before = unpack(packed)
    policy = Policy([Budget(max_calls=1_000)])
    session = policy.session("s", store=store, clock=clock)
    assert before.closed
    assert session.call("new_tool", {"n": 1}, lambda *_: "done").code == "budget.max_cost"
    after = store.update(["s"], lambda states: states[0])
    assert after.n > before.n
    assert after.run == before.run
    found = store.read("s")
    assert found is not None
    assert (packed[0], found.packed[0]) == (6, VERSION)
