"""
A store in PostgreSQL: its faults in words, and what a crash of the server leaves.
"""

import threading

from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.core.state import SessionState
from guardrails.errors import StoreError
from guardrails.stores.places import store_at
from guardrails.stores.postgres import PostgresStore
from tests.stores.servers import NO_POSTGRES, POSTGRES, Postgres, in_postgres, shared_postgres
from tests.stores.test_contract import spend
from tests.tables import table


pytestmark = [pytest.mark.system, pytest.mark.skipif(POSTGRES is None, reason=NO_POSTGRES)]
ONE = spend(1)


def test_a_url_on_a_command_line_is_a_store_in_a_table_of_its_namespace() -> None:
    with store_at(shared_postgres().url, namespace="mine") as store:
        assert isinstance(store, PostgresStore)
        store.update(["s"], ONE)
        assert shared_postgres().ask("SELECT key FROM mine_states") == [(b"s",)]
        assert "test@" not in repr(store)
        assert store.clock() > 1_000_000_000


@table(
    ("url", "reason"),
    [
        ("postgresql://user:hidden@127.0.0.1:1/none", "cannot be reached"),
        ("{own}?sslmode=require", "cannot be reached"),
        ("{own}?nosuch=1", "cannot be used|cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_used_is_named_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as raised:
        PostgresStore(url.format(own=shared_postgres().url), timeout=0.1)
    assert "hidden" not in str(raised.value)


def test_a_table_of_another_program_stays_as_it_is() -> None:
    shared_postgres().ask("CREATE TABLE theirs (name text)")
    store = PostgresStore(shared_postgres().url, table="theirs")
    with store, pytest.raises(StoreError, match="use another file, `table` or `namespace`"):
        store.update(["s"], ONE)
    assert shared_postgres().ask("SELECT count(*) FROM theirs") == [(0,)]
    with pytest.raises(StoreError, match="no name of a table"):
        PostgresStore(shared_postgres().url, table="a; DROP TABLE theirs")


def test_what_others_lock_for_too_long_is_told() -> None:
    with in_postgres(timeout=0.3) as store, in_postgres() as other:
        store.update(["s"], ONE)
        inside, leave = threading.Event(), threading.Event()
        other._table = store._table

        def hold(states: list[SessionState]) -> Any:
            inside.set()
            return leave.wait(60)

        thread = threading.Thread(target=other.update, args=(["s"], hold))
        thread.start()
        inside.wait(60)
        with pytest.raises(StoreError, match="was locked by others"):
            store.update(["s"], ONE)
        leave.set()
        thread.join()
        assert store.update(["s"], ONE) == [2]


def test_a_server_that_crashes_forgets_nothing_and_is_found_again() -> None:
    server = Postgres()
    with PostgresStore(server.url, timeout=60) as store:
        session = Policy([Budget(max_calls=100)]).session("s", store=store)
        for n in range(3):
            assert session.call("t", {"n": n}, lambda *_: "ok").ok
            server.restart()
        assert store.update(["s"], lambda states: states[0].calls) == 3
        server.kill()
        unmade = PostgresStore.__new__(PostgresStore)
        with pytest.raises(StoreError, match="cannot be reached"):
            PostgresStore.__init__(unmade, server.url, timeout=0.2)
        server.start()
        assert session.call("t", {"n": 4}, lambda *_: "ok").ok
    server.remove()
