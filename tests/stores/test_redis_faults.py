"""
Sessions in a server: what is lost and what is not, if a connection or the server fails.
"""

import os
import threading
import time

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, RedisStore, SessionState, StoreError
from tests.stores.cutting_proxy import FAULTS, CuttingProxy
from tests.stores.redis_server import Server, needed, shared
from tests.tables import table


pytestmark = needed


def spend(states: list[SessionState]) -> list[int]:
    for state in states:
        state.calls += 1
    return [state.calls for state in states]


def look(states: list[SessionState]) -> list[int]:
    return [state.calls for state in states]


@pytest.fixture
def name() -> str:
    return f"t{os.urandom(6).hex()}"


@pytest.fixture
def proxy() -> Iterator[CuttingProxy]:
    with CuttingProxy(shared().port) as made:
        yield made


@pytest.fixture
def store(proxy: CuttingProxy, name: str) -> Iterator[RedisStore]:
    with RedisStore(proxy.url, namespace=name, timeout=10.0) as made:
        yield made


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.remove()


@table("fault", FAULTS)
@table("again", [0, 1, 2])
@table("known", [True, False])
def test_a_step_whose_connection_is_cut_happens_exactly_once(
    store: RedisStore, proxy: CuttingProxy, name: str, fault: str, again: int, known: bool
) -> None:
    own = f"{fault} {again} {known}"
    keys = [own, f"/user/{own}"]
    if known:
        store.update(keys, spend)
    proxy.fault, proxy.again, before = fault, again, proxy.cut
    steps = [store.update(keys, spend) for _ in range(3)]
    assert proxy.cut > before
    assert steps == [[n + known, n + known] for n in (1, 2, 3)]
    with RedisStore(shared().url, namespace=name) as other:
        assert other.update(keys, look) == steps[-1]


def test_a_commit_that_comes_late_is_not_done_a_second_time(store: RedisStore, proxy: CuttingProxy, name: str) -> None:
    """
    It was on its way when its connection was lost, so that the step was done again; then it arrives after all.
    """
    store.update(["s"], spend)
    proxy.fault = "late"
    assert store.update(["s"], spend) == [2]
    proxy.deliver()
    with RedisStore(shared().url, namespace=name) as other:
        assert other.update(["s"], look) == [2]
    assert store.update(["s"], spend) == [3]


def test_threads_whose_connections_are_cut_all_the_time_lose_and_double_nothing(proxy: CuttingProxy, name: str) -> None:
    ended = threading.Event()

    def cut() -> None:
        while not ended.wait(0.003):
            proxy.cut_all()

    with RedisStore(proxy.url, namespace=name, timeout=60) as store:

        def work(own: str) -> None:
            for _ in range(10):
                store.update([own, "/user/u1"], spend)

        threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(4)]
        cutting = threading.Thread(target=cut)
        for thread in (*threads, cutting):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        cutting.join()
    with RedisStore(shared().url, namespace=name) as other:
        assert other.update(["/user/u1", *(f"s{n}" for n in range(4))], look) == [40, 10, 10, 10, 10]


ASKED: dict[str, Callable[[RedisStore], Any]] = {
    "update": lambda store: store.update(["s"], spend),
    "length": len,
    "read": lambda store: store.read("s"),
    "entries": lambda store: list(store.entries()),
    "forget": lambda store: store.forget("s"),
    "prune": lambda store: store.prune("1d"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
@table("connected", [True, False])
def test_a_server_that_does_not_answer_in_time_is_an_error_within_the_timeout(
    proxy: CuttingProxy, name: str, ask: Callable[[RedisStore], Any], connected: bool
) -> None:
    proxy.fault = ""
    with RedisStore(proxy.url, namespace=name, timeout=0.4) as store:
        store.update(["s"], lambda states: setattr(states[0], "run", "x" * 20_000))
        if not connected:
            store.close()
        proxy.fault = "silent"
        start = time.monotonic()
        with pytest.raises(StoreError, match="did not answer within"):
            ask(store)
        assert time.monotonic() - start < 1.5


def test_a_call_is_refused_and_its_result_kept_if_the_server_is_gone(server: Server) -> None:
    with RedisStore(server.url, timeout=0.3) as store:
        session = Policy([Budget(max_calls=9)]).session("s", store=store)
        assert session.call("t", {"n": 1}, lambda *_: "ok").ok

        def dies(*_: object) -> str:
            server.kill()
            return "done"

        settled = session.call("t", {"n": 2}, dies)
        assert (settled.ok, settled.value) == (True, "done")
        assert session.call("t", {"n": 3}, lambda *_: "ran").code == "store.error"
        server.start()
        assert session.call("t", {"n": 4}, lambda *_: "ok").ok


def test_a_restart_in_the_middle_is_waited_for(server: Server) -> None:
    with RedisStore(server.url, timeout=20) as store:
        store.update(["s"], spend)
        server.kill()
        starting = threading.Timer(0.1, server.start)
        starting.start()
        assert store.update(["s"], spend)
        starting.join()


def test_a_restart_with_a_log_keeps_all_that_was_admitted(tmp_path: Path) -> None:
    server = Server("--appendonly", "yes", "--appendfsync", "always")
    try:
        with RedisStore(server.url, timeout=20) as store:
            for n in range(1, 4):
                assert store.update(["s", "/user/u1"], spend) == [n, n]
                server.restart()
            assert store.update(["s", "/user/u1"], look) == [3, 3]
    finally:
        server.remove()


def test_a_replica_is_refused_and_waited_for_until_it_takes_writes(server: Server) -> None:
    replica = Server("--replicaof", "127.0.0.1", str(server.port))
    try:
        wait_for(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up")
        with pytest.raises(StoreError, match="is a replica, which takes no writes: give the address of the primary"):
            RedisStore(replica.url, timeout=0.3)
        promoting = threading.Timer(0.1, lambda: replica.ask("REPLICAOF", "NO", "ONE"))
        promoting.start()
        with RedisStore(replica.url, timeout=20) as store:
            assert store.update(["s"], spend) == [1]
        promoting.join()
    finally:
        replica.remove()


def wait_for(said: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not said():
        assert time.monotonic() < until
        time.sleep(0.01)
