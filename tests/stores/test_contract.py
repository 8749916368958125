"""
What every store must do, run over each of them.
"""

import atexit
import os
import sqlite3
import time

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Policy
from guardrails.core.packing import VERSION, unpack
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable
from guardrails.stores import Listed
from guardrails.stores.memory import MemoryStore
from guardrails.stores.postgres import PostgresStore
from guardrails.stores.redis import RedisStore
from guardrails.stores.sqlite import SqliteStore
from tests.stores.mapped import MappedStore
from tests.stores.servers import in_postgres, in_redis, shared, shared_postgres
from tests.tables import table


OLDER = Path(__file__).parents[1] / "golden/0.2.0/state.bin"
FOLDER = Path(mkdtemp(prefix="guardrails-stores-"))
atexit.register(rmtree, FOLDER, ignore_errors=True)
HOUR_MS = 3_600_000


def in_a_file(**settings: Any) -> Listed:
    return SqliteStore(FOLDER / f"{os.urandom(8).hex()}.db", **settings)


Make = Callable[[], Listed]
LASTING: dict[str, Make] = {
    "sqlite": in_a_file,
    "sqlite, none live": lambda: in_a_file(live=0),
    "redis": in_redis,
    "redis, none live": lambda: in_redis(live=0),
    "postgres": in_postgres,
    "postgres, none live": lambda: in_postgres(live=0),
}
STORES: dict[str, Make] = {
    "memory": MemoryStore,
    "memory, one live": lambda: MemoryStore(live=1),
    "mapped, of one's own": lambda: MappedStore({}),
    **LASTING,
}


def over(stores: dict[str, Make]) -> pytest.MarkDecorator:
    """
    Runs a test over each of *stores*; those of servers start one.
    """
    marks = {name: [pytest.mark.system] * name.startswith(("redis", "postgres")) for name in stores}
    return pytest.mark.parametrize(
        "make", [pytest.param(make, id=name, marks=marks[name]) for name, make in stores.items()]
    )


made, made_to_last = over(STORES), over(LASTING)


def spend(amount: int) -> Callable[[list[SessionState]], list[int]]:
    def step(states: list[SessionState]) -> list[int]:
        for state in states:
            state.calls += 1
            state.cost += amount
        return [state.calls for state in states]

    return step


ONE = spend(1)


def look(states: list[SessionState]) -> list[int]:
    return [state.calls for state in states]


def cost(store: Listed, key: str) -> int:
    return store.update([key], lambda states: states[0].cost)


def alter(store: Any, key: str, name: str, value: Any) -> None:
    """
    Write *value* as it is into the field *name* of the state of *key*, as another version of the library would have.
    """
    match store:
        case MemoryStore():
            store._live.pop(key, None)
            store._idle[key] = value
        case MappedStore():
            store.states[key] = value
        case SqliteStore():
            with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
                database.execute(f"UPDATE states SET {name} = ? WHERE key = ?", (value, key))
        case RedisStore():
            fields = ("v", "of another", {"state": "s", "at_ms": "at"}[name], value)
            shared().ask("HSET", f"{{{store.namespace}}}:h:{key}", *fields)
        case PostgresStore():
            shared_postgres().ask(f"UPDATE {store._table} SET {name} = %s WHERE key = %s", value, key.encode())


def second(store: Any, **settings: Any) -> Any:
    """
    Returns a store of the same place, as another process has.
    """
    match store:
        case SqliteStore():
            return SqliteStore(store.path, **settings)
        case RedisStore():
            return RedisStore(shared().url, namespace=store.namespace, **settings)
        case _:
            return PostgresStore(shared_postgres().url, table=store._table, **settings)


@made
@given(story=st.lists(st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, unique=True), st.integers(0, 9))))
def test_states_that_come_and_go_are_as_if_they_had_always_been_there(
    make: Make, story: list[tuple[list[str], int]]
) -> None:
    store, expected = make(), {key: SessionState() for key in "abcd"}
    for keys, amount in story:
        assert store.update(keys, spend(amount)) == spend(amount)([expected[key] for key in keys])
    for key, state in expected.items():
        assert store.update([key], lambda states: states[0]) == state
    assert len(store) == len(expected)
    for key in ("a", "b", "never there"):
        store.forget(key)
    assert (len(store), cost(store, "c"), cost(store, "a")) == (2, expected["c"].cost, 0)


@made
def test_a_step_that_raises_lets_the_error_out_and_the_next_one_in(make: Make) -> None:
    store = make()

    def fails(states: list[SessionState]) -> None:
        raise ZeroDivisionError

    for keys in (["new"], ["new", "other"]):
        with pytest.raises(ZeroDivisionError):
            store.update(keys, fails)
    assert store.update(["new", "other"], spend(1)) == [1, 1]
    for asks in (lambda _: store.update(["b"], spend(1)), lambda _: store.forget("new")):
        with pytest.raises(RuntimeError, match="from inside of its own store's update"):
            store.update(["new"], asks)
    assert store.update(["new"], spend(1)) == [2]


@made
def test_what_moves_between_two_keys_is_never_seen_half_way(make: Make, quick_switches: None) -> None:
    store, seen = make(), set[int]()
    store.update(["a", "b"], spend(1_000))

    def move(amount: int) -> None:
        def step(states: list[SessionState]) -> None:
            states[0].cost -= amount
            states[1].cost += amount

        for _ in range(200):
            store.update(["a", "b"], step)

    def look() -> None:
        for _ in range(200):
            seen.add(store.update(["b", "a"], lambda states: states[0].cost + states[1].cost))

    with ThreadPoolExecutor(5) as pool:
        works = [*[pool.submit(move, amount) for amount in (1, -1, 3)], pool.submit(look), pool.submit(look)]
    assert [work.exception() for work in works] == [None] * 5
    assert seen == {2_000}
    assert cost(store, "a") == 400


@made
def test_what_is_kept_is_listed_each_once_and_by_what_its_key_begins_with(make: Make) -> None:
    store = make()
    assert (store.read("a"), list(store.entries())) == (None, [])
    keys = {f"{kind}-{n}" for kind in ("trip", "täxi", "trip%", "tri_") for n in range(7)}
    keys |= {"/user/u1", "/tenant/a", "trip", "a b", "a\nb", "{x}y", "s:a", "a\0b", "日本", "x" * 500}
    for key in sorted(keys):
        store.update([key], spend(3))
    assert sorted(one.key for one in store.entries()) == sorted(keys)
    for prefix in ("trip", "trip%", "tri_", "/", "/user/", "tä", "none", "trip-6", "a\ud800", "a\0"):
        listed = [one.key for one in store.entries(prefix)]
        assert sorted(listed) == sorted(key for key in keys if key.startswith(prefix))
    assert all(unpack(one.packed).cost == 3 for one in store.entries())
    assert [*store.entries("trip-6")] == [store.read("trip-6")]
    assert [store.read(other) for other in ("b", "", "a\ud800", "a\0", "TRIP")] == [None] * 5
    assert len(store) == len(keys), "a look makes none"


@made
@table(
    ("packed", "reason"),
    [
        (bytes([VERSION + 1]) + b"of another time", f"is of version {VERSION + 1}, and this version of the library"),
        (b"\7", ""),
        (b"x" * 100, ""),
    ],
)
@table("on_error", ["deny", "allow"])
@table("key", ["s", "/user/u1"])
def test_a_state_that_cannot_be_read_lets_no_call_run_and_stays_as_it_is(
    make: Make, key: str, on_error: Any, packed: bytes, reason: str, clock: Any
) -> None:
    """
    What a process of this version does that meets a state of the next, or a damaged one.
    """
    store = make()
    policy = Policy([Budget(max_calls=3)], scopes={"user": [Budget(max_calls=5)]}, on_error=on_error)
    session = policy.session("s", store=store, clock=clock, scopes={"user": "u1"})
    assert session.call("t", {"n": 0}, lambda *_: "ran").ok
    store.update(["b"], spend(1))
    alter(store, key, "state", packed)
    refused = session.call("t", {"n": 1}, lambda *_: "ran")
    assert (refused.code, refused.status) == ("store.unreadable", "denied")
    for ask in (lambda: session.exhausted, lambda: store.update(["b", key], spend(1))):
        with pytest.raises(StateUnreadable, match=f"state .*{reason}.*`forget` it"):
            ask()
    assert {one.key: one.packed for one in store.entries()}[key] == packed
    assert cost(store, "b") == 1
    store.forget(key)
    assert session.call("t", {"n": 1}, lambda *_: "ran").ok


@made
def test_a_state_that_0_2_0_packed_goes_on_in_any_store(make: Make, clock: Any) -> None:
    store, packed = make(), OLDER.read_bytes()
    store.update(["s"], spend(1))
    alter(store, "s", "state", packed)
    before = unpack(packed)
    session = Policy([Budget(max_calls=1_000)]).session("s", store=store, clock=clock)
    assert before.closed
    assert session.call("new_tool", {"n": 1}, lambda *_: "done").code == "budget.max_cost"
    after = store.update(["s"], lambda states: states[0])
    assert (after.n > before.n, after.run) == (True, before.run)
    found = store.read("s")
    assert found is not None
    assert (packed[0], found.packed[0]) == (6, VERSION)


@made_to_last
def test_what_one_store_changed_another_finds_though_it_had_the_state_before(make: Make) -> None:
    store = make()
    with second(store) as other:
        counts = [where.update(["a", "b"], spend(1)) for where in (store, other, store, store, other)]
    assert counts == [[n, n] for n in range(1, 6)]


@made_to_last
def test_what_a_process_last_saw_of_a_scope_admits_nothing_beyond_its_limit(make: Make) -> None:
    store, policy = make(), Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=4)]})
    with second(store) as other:
        one, two = (policy.session(name, scopes={"user": "u"}, store=at) for name, at in (("a", store), ("b", other)))
        codes = [each.call("t", {"n": n}, lambda *_: "ok").code for n, each in enumerate((one, two, two, two, one))]
        assert codes == [None] * 4 + ["user.budget.max_calls"]
        assert other.update(["/user/u"], lambda states: states[0].calls) == 4


@made_to_last
def test_sessions_that_nothing_changed_for_long_are_pruned_and_scopes_if_asked(make: Make) -> None:
    store: Any = make()
    for key in ("old", "older/child", "/user/u1", "new"):
        store.update([key], spend(1))
    for key in ("old", "older/child", "/user/u1"):
        alter(store, key, "at_ms", round(time.time() * 1000) - HOUR_MS)
    pruned = [store.prune("2h"), store.prune(1_800, prefix="x"), store.prune("30m", prefix="older"), store.prune("30m")]
    assert pruned == [0, 0, 1, 1]
    assert sorted(one.key for one in store.entries()) == ["/user/u1", "new"]
    assert (store.prune("30m", scopes=True), len(store)) == (1, 1)
    assert store.update(["old", "new"], spend(1)) == [1, 2]
    with pytest.raises(ValueError, match="duration"):
        store.prune("soon")
