"""
Stores on servers that are gone, are not fit, or let nobody in, whichever server it is.
"""

import threading

from collections.abc import Iterator
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.core.state import SessionState
from guardrails.errors import StoreError
from guardrails.stores.places import store_at
from guardrails.stores.postgres import PostgresStore
from tests.children import PATIENCE_S, until
from tests.stores.servers import Postgres, Server, in_postgres, shared_postgres
from tests.stores.test_contract import in_a_file, second, spend


pytestmark = pytest.mark.system
ONE = spend(1)


def look(states: list[SessionState]) -> list[int]:
    return [state.calls for state in states]


@pytest.fixture(params=["redis", "postgres"])
def server(request: pytest.FixtureRequest) -> Iterator[Server | Postgres]:
    """
    A server that has on its disk what it answered.
    """
    made = Server("--appendonly", "yes", "--appendfsync", "always") if request.param == "redis" else Postgres()
    yield made
    made.remove()


def test_a_crash_forgets_nothing_and_calls_are_refused_until_the_server_is_back(server: Server | Postgres) -> None:
    policy = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=9)]})

    def dies(*_: object) -> str:
        server.kill()
        return "done"

    with store_at(server.url, timeout=3) as store, store_at(server.url, timeout=PATIENCE_S) as patient:
        session = policy.session("s", scopes={"user": "u1"}, store=store)
        settled = session.call("t", {"n": 1}, dies)
        assert (settled.ok, settled.value) == (True, "done"), "a result is not lost"
        assert session.call("t", {"n": 2}, lambda *_: "ran").code == "store.error"
        with pytest.raises(StoreError, match="cannot be reached") as raised:
            store_at(server.url.replace("//", "//me:hidden@").replace("test@", ""), timeout=0.1)
        starting = threading.Timer(0.1, server.start)
        starting.start()
        assert patient.update(["s", "/user/u1"], look) == [1, 1], "a restart is waited for"
        starting.join()
        assert session.call("t", {"n": 3}, lambda *_: "ok").ok
    assert "hidden" not in f"{raised.value} {raised.value.__cause__}"


def test_a_redis_that_could_drop_states_is_refused_and_a_full_one_keeps_what_was_admitted() -> None:
    server = Server("--requirepass", "hidden")
    client: Any = server.client(password="hidden")
    for given in ("", ":wrong@"):
        with pytest.raises(StoreError, match="did not let this user in: correct user and password") as error:
            store_at(server.url.replace("//", f"//{given}"))
        assert "wrong" not in str(error.value)
    place = server.url.replace("//", "//:hidden@")
    with store_at(place) as store:
        assert "hidden" not in f"{store!r} {store.place}"
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(StoreError, match=r"may drop states .*maxmemory-policy `allkeys-lru`.*`noeviction`"):
            store_at(place)
        client.config_set("maxmemory-policy", "noeviction")
        store.update(["a", "b"], ONE)
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreError, match="is full: free some space, or `prune` sessions that are over"):
            store.update(["a", "b"], ONE)
        store.forget("b")
        client.config_set("maxmemory", "0")
        assert store.update(["a", "b"], ONE) == [2, 1]
    client.close()
    server.remove()


def test_a_replica_of_redis_is_refused_until_it_takes_writes() -> None:
    primary = Server()
    replica = Server("--replicaof", "127.0.0.1", str(primary.port))
    until(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up")
    with pytest.raises(StoreError, match="is a replica, which takes no writes: give the address of the primary"):
        store_at(replica.url, timeout=3)
    replica.ask("CONFIG", "SET", "replica-read-only", "no")
    with pytest.raises(StoreError, match="is a replica whose writes are lost"):
        store_at(replica.url)
    replica.ask("REPLICAOF", "NO", "ONE")
    with store_at(replica.url) as store:
        assert store.update(["s"], ONE) == [1]
    replica.remove()
    primary.remove()


def test_a_table_of_another_program_stays_and_ours_is_named_by_a_namespace() -> None:
    server = shared_postgres()
    server.ask("CREATE TABLE theirs (name text)")
    store = PostgresStore(server.url, table="theirs")
    with store, pytest.raises(StoreError, match="use another file, `table` or `namespace`"):
        store.update(["s"], ONE)
    assert server.ask("SELECT count(*) FROM theirs") == [(0,)]
    with pytest.raises(StoreError, match="no name of a table"):
        PostgresStore(server.url, table="a; DROP TABLE theirs")
    with store_at(server.url, namespace="mine") as own:
        own.update(["s"], ONE)
        assert server.ask("SELECT key FROM mine_states") == [(b"s",)]


@pytest.mark.parametrize("make", [in_a_file, in_postgres])
def test_what_others_lock_for_too_long_is_an_error_and_works_again_afterwards(make: Any) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(states: list[SessionState]) -> bool:
        inside.set()
        return leave.wait(PATIENCE_S)

    with make() as other, second(other, timeout=1) as store:
        store.update(["s"], ONE)
        thread = threading.Thread(target=other.update, args=(["s"], hold))
        thread.start()
        inside.wait(PATIENCE_S)
        with pytest.raises(StoreError, match="was locked by others"):
            store.update(["s"], ONE)
        leave.set()
        thread.join()
        assert store.update(["s"], ONE) == [2]
