"""
Sessions in a server of Redis: what only this store does, what it says of servers that are not fit for it, and what a fault loses.
"""

import gc
import os
import signal
import threading
import time

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from guardrails import Budget, MemorySink, Policy, Rate, RedisStore, Tool
from guardrails.core.guards.base import SessionState
from guardrails.core.packing import pack
from guardrails.errors import StoreError
from tests.replaying import replay
from tests.stores.cutting_proxy import FAULTS, CuttingProxy
from tests.stores.servers import Server, cluster, in_redis, needed, shared, wait_for
from tests.stores.test_contract import second, spend
from tests.tables import table


pytestmark = needed
ONE = spend(1)


def look(states: list[SessionState]) -> list[int]:
    return [state.calls for state in states]


def used(store: RedisStore, key: str) -> tuple[int, int, int]:
    def amounts(states: list[SessionState]) -> tuple[int, int, int]:
        return states[0].calls, states[0].cost, states[0].reserved_by_children("max_cost")

    return store.update([key], amounts)


@pytest.fixture
def store() -> Iterator[RedisStore]:
    with in_redis() as made:
        yield made


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.remove()


TENANTS = ("acme", "a b", "{x}", "a%20b", "日本", "", *map(str, range(20)))


def test_a_cluster_spreads_tenants_and_holds_each_to_its_limit() -> None:
    import redis

    policy = Policy([Budget(max_calls=9)], scopes={"tenant": [Budget(max_calls=3)]})
    with cluster(2) as nodes, redis.RedisCluster(host="127.0.0.1", port=nodes[0].port) as client:
        store = RedisStore(client)
        for tenant in TENANTS:
            scopes = {"tenant": tenant or "none"}
            sessions = [policy.session(f"s{n}", scopes=scopes, store=store.tenant(tenant)) for n in range(2)]
            codes = [session.call("t", {"n": n}, lambda *_: "ok").code for n in range(2) for session in sessions]
            assert codes == [None, None, None, "tenant.budget.max_calls"]
            assert [one.key for one in store.tenant(tenant).entries("/tenant/")] == [f"/tenant/{scopes['tenant']}"]
        # A client of the program can be given, of a single server too.
        assert abs(store.clock() - time.time()) < 60
        assert min(node.ask("DBSIZE") for node in nodes) >= len(TENANTS)


# Servers that are not fit


def test_a_server_that_could_drop_states_and_a_full_one_are_told(server: Server) -> None:
    with RedisStore(server.url) as store:
        for policy in ("allkeys-lru", "allkeys-lfu", "allkeys-random"):
            server.ask("CONFIG", "SET", "maxmemory-policy", policy)
            with pytest.raises(StoreError, match=f"may drop states .*maxmemory-policy `{policy}`.*`noeviction`"):
                RedisStore(server.url)
        server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        # Full: it refuses new steps, keeps what was admitted, and goes on once there is room.
        store.update(["a", "b"], ONE)
        server.ask("CONFIG", "SET", "maxmemory", "1")
        full = r"is full: free some space, or `prune` sessions that are over; what was admitted before is kept \("
        for _ in range(2):
            with pytest.raises(StoreError, match=full):
                store.update(["a", "b"], ONE)
        store.forget("b")
        server.ask("CONFIG", "SET", "maxmemory", "0")
        assert store.update(["a", "b"], ONE) == [2, 1]


@table(
    ("settings", "reason"),
    [
        (("--replica-read-only", "no"), r"is a replica whose writes are lost .* give the address of the primary"),
        ((), "is a replica, which takes no writes: give the address of the primary"),
    ],
)
def test_a_replica_is_refused_until_it_takes_writes(server: Server, settings: tuple[str, ...], reason: str) -> None:
    replica = Server("--replicaof", "127.0.0.1", str(server.port), *settings)
    try:
        wait_for(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up")
        with pytest.raises(StoreError, match=reason):
            RedisStore(replica.url, timeout=0.3)
        promoting = threading.Timer(0 if settings else 0.1, lambda: replica.ask("REPLICAOF", "NO", "ONE"))
        promoting.start()
        promoting.join(60 if settings else 0)
        with RedisStore(replica.url, timeout=20) as store:
            assert store.update(["s"], ONE) == [1]
        promoting.join()
    finally:
        replica.remove()


def test_a_password_that_is_missing_or_wrong_is_told_and_never_shown(server: Server) -> None:
    server.ask("CONFIG", "SET", "requirepass", "hidden")
    for given in ("", ":wrong@"):
        with pytest.raises(StoreError, match="did not let this user in: correct user and password") as error:
            RedisStore(server.url.replace("//", f"//{given}"))
        assert "wrong" not in str(error.value)
    with RedisStore(server.url.replace("//", "//:hidden@"), timeout=1) as store:
        assert store.update(["a"], ONE) == [1]
        server.kill()
        with pytest.raises(StoreError) as error:
            store.update(["a"], ONE)
    assert "hidden" not in f"{error.value} {error.value.__cause__} {store!r} {store.place}"


def test_what_another_program_wrote_is_refused_and_what_0_2_0_wrote_goes_on(store: RedisStore) -> None:
    for other in ("toolcall-guardrails 3", "of another program"):
        shared().ask("SET", f"{{{store.namespace}}}:store", other)
        with pytest.raises(StoreError, match=r"what this version cannot read .*use another `namespace`"):
            second(store)
    name, state = f"{{{store.namespace}}}", SessionState(n=7, calls=5, cost=100, reserved={"calls": {"max_cost": 30}})
    shared().ask("SET", f"{name}:store", "toolcall-guardrails 1")
    shared().ask("SET", f"{name}:s:/user/u1", b"x" * 16 + b"1700000000000" + pack(state))
    shared().ask("ZADD", f"{name}:keys", 0, "/user/u1")
    policy = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=7, max_cost_usd=1)]})
    with second(store) as own:
        session = policy.session("s", scopes={"user": "u1"}, store=own)
        codes = [session.call("t", {"n": n}, lambda *_: "ok").code for n in range(3)]
    assert codes == [None, None, "user.budget.max_calls"]
    assert used(store, "/user/u1") == (7, 100, 30)


# Scopes


@pytest.mark.usefixtures("quick_switches")
def test_stores_that_share_scopes_count_exactly_by_two_round_trips_a_call_and_replay(store: RedisStore) -> None:
    """
    Each record has its true place in the scopes, which is known only once the step is kept.
    """
    many = Budget(max_calls=100_000)
    tenant: list[Any] = [many, Rate(max_calls_per_minute=1_000_000)]
    scopes: dict[str, list[Any]] = {"user": [Budget(max_cost_usd=1_000)], "tenant": tenant}
    policy, sink = Policy([many], scopes=scopes, tools=[Tool(name="pay", cost_usd=0.01)]), MemorySink()
    before, begun = shared().ask("INFO", "commandstats"), time.monotonic()

    def work(own: str) -> int:
        with RedisStore(store.place, namespace=store.namespace, timeout=60) as other:
            session, n = policy.session(own, scopes={"user": "u1", "tenant": "t1"}, store=other, records=sink), 0
            while time.monotonic() < begun + 0.7:
                n += session.call("pay", {"n": n}, lambda *_: "ok").ok
            return n

    with ThreadPoolExecutor(4) as pool:
        counts = [*pool.map(work, [f"s{n}" for n in range(4)])]
    after, total = shared().ask("INFO", "commandstats"), sum(counts)
    trips = after["cmdstat_evalsha"]["calls"] - before.get("cmdstat_evalsha", {"calls": 0})["calls"]
    # A session that is new looks first, and a scope that is new is looked at again.
    assert 2 * total <= trips <= 2.2 * total + 40
    assert [used(store, f"s{n}")[0] for n in range(4)] == counts
    assert used(store, "/user/u1") == used(store, "/tenant/t1") == (total, total * 10_000, 0)
    for scope in ("user", "tenant"):
        assert sorted(record["scopes"][scope][2] for record in sink.records) == list(range(1, 2 * total + 1))
    replayed = [*replay(policy.chain, sink.records, scopes=policy.scopes)]
    assert len(replayed) == total
    assert all(one.same for one in replayed)


def test_calls_change_nothing_of_a_scope_but_its_amounts_and_the_last_ones_are_given_to_one_each(
    store: RedisStore,
) -> None:
    """
    Each store has the scope as it was some calls ago; at the limit the server knows better.
    """
    policy = Policy([Budget(max_calls=100)], scopes={"user": [Budget(max_calls=10), Rate(max_calls_per_minute=1_000)]})
    stores = [second(store) for _ in range(4)]
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, store=own) for n, own in enumerate(stores)]
    answers, versions = [], set()
    for n in range(4):
        for session in sessions:
            session.charge(model="gpt-5-mini", cost_usd=0.01)
            answers.append(session.call("t", {"n": n}, lambda *_: "ok"))
            versions.add(shared().ask("HGET", f"{{{store.namespace}}}:h:/user/u1", "v"))
    assert [answer.code for answer in answers] == [None] * 10 + ["user.budget.max_calls"] * 6
    limits = [answer.to_dict().get("limit_reached", False) for answer in answers[:10]]
    assert limits == [False] * 9 + [True]
    assert len(versions) <= 2, "the end of the scope is written once"
    assert used(store, "/user/u1") == (10, 160_000, 0)
    for own in stores:
        own.close()


# Faults


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_interrupted_step_changes_nothing_and_the_next_one_goes_on(store: RedisStore) -> None:
    """
    Ctrl-C at any moment of a step: its keys are free again, and it happened once or not at all.
    """
    done = interrupted = 0
    armed = False

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for n in range(200):
            signal.setitimer(signal.ITIMER_REAL, 0.00002 * (1 + n % 20))
            with suppress(KeyboardInterrupt):
                armed, interrupted = True, interrupted + 1
                store.update(["a", "b"], ONE)
                armed, interrupted, done = False, interrupted - 1, done + 1
            armed = False
            first, other = store.update(["a", "b"], look)
            assert first == other
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    gc.collect()  # A connection that was interrupted while the package made it is open until here.
    assert interrupted
    assert done <= store.update(["a"], look)[0] <= done + interrupted


@pytest.fixture
def proxy() -> Iterator[CuttingProxy]:
    with CuttingProxy(shared().port) as made:
        yield made


def behind(proxy: CuttingProxy, timeout: float) -> RedisStore:
    return RedisStore(proxy.url, namespace=f"t{os.urandom(6).hex()}", timeout=timeout)


@table("fault", FAULTS)
@table("again", [0, 1, 2])
@table("known", [True, False])
def test_a_step_whose_connection_is_cut_happens_exactly_once(
    proxy: CuttingProxy, fault: str, again: int, known: bool
) -> None:
    keys = [f"{fault} {again} {known}", f"/user/{fault} {again} {known}"]
    proxy.fault = ""
    with behind(proxy, 10) as store, second(store) as other:
        if known:
            store.update(keys, ONE)
        proxy.fault, proxy.again, before = fault, again, proxy.cut
        steps = [store.update(keys, ONE) for _ in range(3)]
        assert proxy.cut > before
        assert steps == [[n + known, n + known] for n in (1, 2, 3)]
        assert other.update(keys, look) == steps[-1]


def test_a_commit_that_comes_late_is_not_done_a_second_time(proxy: CuttingProxy) -> None:
    """
    It was on its way when its connection was lost, so that the step was done again; then it arrives after all.
    """
    with behind(proxy, 10) as store, second(store) as other:
        store.update(["s"], ONE)
        proxy.fault = "late"
        assert store.update(["s"], ONE) == [2]
        proxy.deliver()
        assert other.update(["s"], look) == [2]
        assert store.update(["s"], ONE) == [3]


ASKED: tuple[Callable[[RedisStore], Any], ...] = (
    *(lambda store: store.update(["s"], ONE), len, lambda store: store.read("s"), lambda store: [*store.entries()]),
    *(lambda store: store.forget("s"), lambda store: store.prune("1d")),
)


@table("ask", ASKED)
@table("connected", [True, False])
def test_a_server_that_does_not_answer_in_time_is_an_error_within_the_timeout(
    proxy: CuttingProxy, ask: Callable[[RedisStore], Any], connected: bool
) -> None:
    proxy.fault = ""
    with behind(proxy, 0.4) as store:
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


def test_a_restart_is_waited_for_and_with_a_log_keeps_all_that_was_admitted() -> None:
    server = Server("--appendonly", "yes", "--appendfsync", "always")
    try:
        with RedisStore(server.url, timeout=20) as store:
            for n in range(1, 4):
                assert store.update(["s", "/user/u1"], ONE) == [n, n]
                server.kill()
                starting = threading.Timer(0.1, server.start)
                starting.start()
                assert store.update(["s", "/user/u1"], look) == [n, n]
                starting.join()
    finally:
        server.remove()
