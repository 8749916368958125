"""
A store in PostgreSQL: its faults in words, and what a crash of the server leaves.
"""

import threading

from typing import Any

import pytest

from guardrails import Budget, Policy, StoreError
from guardrails.core.state import SessionState
from guardrails.stores.persistence import PersistentStore
from guardrails.stores.places import store_at
from guardrails.stores.postgres import PostgresStore
from tests.stores.postgres_server import Postgres, in_postgres, needed, shared
from tests.tables import table


pytestmark = [pytest.mark.system, needed]


def spend(states: list[SessionState]) -> list[int]:
    for state in states:
        state.calls += 1
    return [state.calls for state in states]


def test_a_url_on_a_command_line_is_a_store_in_a_table_of_its_namespace() -> None:
    with store_at(shared().url, namespace="mine") as store:
        assert isinstance(store, PostgresStore)
        store.update(["s"], spend)
        assert shared().ask("SELECT key FROM mine_states") == [(b"s",)]
        assert "test@" not in repr(store)


@table(
    ("url", "says"),
    [
        ("postgresql://user:hidden@127.0.0.1:1/none", "cannot be reached"),
        ("{own}?sslmode=require", "cannot be reached"),
        ("{own}?nosuch=1", "cannot be used|cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_used_is_named_without_its_password(url: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as raised:
        PostgresStore(url.format(own=shared().url), timeout=0.1)
    assert "hidden" not in str(raised.value)


def test_a_table_of_another_program_stays_as_it_is() -> None:
    shared().ask("CREATE TABLE theirs (name text)")
    store = PostgresStore(shared().url, table="theirs")
    with store, pytest.raises(StoreError, match="use another file, `table` or `namespace`"):
        store.update(["s"], spend)
    assert shared().ask("SELECT count(*) FROM theirs") == [(0,)]
    with pytest.raises(StoreError, match="no name of a table"):
        PostgresStore(shared().url, table="a; DROP TABLE theirs")


def test_what_others_lock_for_too_long_is_told() -> None:
    with in_postgres(timeout=0.3) as store, in_postgres() as other:
        store.update(["s"], spend)
        inside, leave = threading.Event(), threading.Event()
        other._table = store._table

        def hold(states: list[SessionState]) -> Any:
            inside.set()
            return leave.wait(60)

        thread = threading.Thread(target=other.update, args=(["s"], hold))
        thread.start()
        inside.wait(60)
        with pytest.raises(StoreError, match="was locked by others"):
            store.update(["s"], spend)
        leave.set()
        thread.join()
        assert store.update(["s"], spend) == [2]


def test_more_threads_than_connections_take_turns() -> None:
    with in_postgres() as store:
        threads = [
            threading.Thread(target=lambda n=n: [store.update(["s", f"{n}"], spend) for _ in range(5)])
            for n in range(3 * PersistentStore._places)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.update(["s"], spend) == [15 * PersistentStore._places + 1]
        (open_,) = shared().ask("SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s", f"%{store._table}%")[0]
        assert open_ <= PersistentStore._places + 1


def test_a_server_that_crashes_forgets_nothing_and_is_found_again() -> None:
    server = Postgres()
    policy = Policy([Budget(max_calls=100)])
    with PostgresStore(server.url, timeout=60) as store:
        session = policy.session("s", store=store)
        for n in range(3):
            assert session.call("t", {"n": n}, lambda *_: "ok").ok
            server.restart()
        assert store.update(["s"], lambda states: states[0].calls) == 3
        server.stop()
        quick = PostgresStore.__new__(PostgresStore)
        with pytest.raises(StoreError, match="cannot be reached"):
            PostgresStore.__init__(quick, server.url, timeout=0.2)
        server.start()
        assert session.call("t", {"n": 4}, lambda *_: "ok").ok
    server.remove()


def test_what_is_idle_is_pruned_by_the_time_of_the_server() -> None:
    with in_postgres() as store:
        for key in ("old", "older/child", "/user/u", "new"):
            store.update([key], spend)
        shared().ask(f"UPDATE {store._table} SET at_ms = 0 WHERE key <> %s", b"new")
        assert [store.prune("1d", prefix="older"), store.prune("1d")] == [1, 1]
        assert sorted(one.key for one in store.entries()) == ["/user/u", "new"]
        assert store.prune("1d", scopes=True) == 1
        assert store.clock() > 1_000_000_000
