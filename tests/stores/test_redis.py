"""
Sessions in a server of Redis: what only this store does, and what a cut connection loses (nothing).
"""

import os

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from guardrails import Budget, MemorySink, Policy, Rate, RedisStore, Tool
from guardrails.core.guards.base import SessionState
from guardrails.core.packing import pack
from guardrails.errors import StoreError
from tests.children import PATIENCE_S, free_port, until
from tests.replaying import replay
from tests.stores.cutting_proxy import FAULTS, CuttingProxy
from tests.stores.servers import Server, in_redis, needed, shared
from tests.stores.test_contract import ONE, look, second
from tests.tables import table


pytestmark = [needed, pytest.mark.system]


def used(store: RedisStore, key: str) -> tuple[int, int, int]:
    def amounts(states: list[SessionState]) -> tuple[int, int, int]:
        return states[0].calls, states[0].cost, states[0].reserved_by_children("max_cost")

    return store.update([key], amounts)


@pytest.fixture
def store() -> Iterator[RedisStore]:
    with in_redis() as made:
        yield made


TENANTS = ("acme", "a b", "{x}", "a%20b", "日本", "")


def test_each_tenant_of_a_cluster_is_one_slot_and_held_to_its_limit() -> None:
    import redis

    # The nodes of a cluster speak to each other by the port that is 10,000 higher.
    node = Server("--cluster-enabled", "yes", port=next(port for port in iter(free_port, 0) if port < 55_000))
    node.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
    until(lambda: b"cluster_state:ok" in node.ask("CLUSTER", "INFO"))
    policy = Policy([Budget(max_calls=9)], scopes={"tenant": [Budget(max_calls=3)]})
    with redis.RedisCluster(host="127.0.0.1", port=node.port) as client:
        store = RedisStore(client)
        for tenant in TENANTS:
            scopes = {"tenant": tenant or "none"}
            sessions = [policy.session(f"s{n}", scopes=scopes, store=store.tenant(tenant)) for n in range(2)]
            codes = [session.call("t", {"n": n}, lambda *_: "ok").code for n in range(2) for session in sessions]
            assert codes == [None, None, None, "tenant.budget.max_calls"]
            assert [one.key for one in store.tenant(tenant).entries("/tenant/")] == [f"/tenant/{scopes['tenant']}"]
    node.remove()


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


@pytest.mark.usefixtures("quick_switches")
def test_stores_that_share_scopes_count_exactly_and_replay(store: RedisStore) -> None:
    """
    Each record has its true place in the scopes, which is known only once the step is kept.
    """
    many = Budget(max_calls=100_000)
    tenant: list[Any] = [many, Rate(max_calls_per_minute=1_000_000)]
    scopes: dict[str, list[Any]] = {"user": [Budget(max_cost_usd=1_000)], "tenant": tenant}
    policy, sink = Policy([many], scopes=scopes, tools=[Tool(name="pay", cost_usd=0.01)]), MemorySink()

    def work(own: str) -> int:
        with second(store, timeout=PATIENCE_S) as other:
            session = policy.session(own, scopes={"user": "u1", "tenant": "t1"}, store=other, records=sink)
            return sum(session.call("pay", {"n": n}, lambda *_: "ok").ok for n in range(150))

    with ThreadPoolExecutor(4) as pool:
        counts = [*pool.map(work, [f"s{n}" for n in range(4)])]
    total = 600
    assert [used(store, f"s{n}")[0] for n in range(4)] == counts == [150] * 4
    assert used(store, "/user/u1") == used(store, "/tenant/t1") == (total, total * 10_000, 0)
    for scope in ("user", "tenant"):
        assert sorted(record["scopes"][scope][2] for record in sink.records) == list(range(1, 2 * total + 1))
    replayed = [*replay(policy.chain, sink.records, scopes=policy.scopes)]
    assert len(replayed) == total
    assert all(one.same for one in replayed)


@pytest.fixture
def proxy() -> Iterator[CuttingProxy]:
    with CuttingProxy(shared().port) as made:
        yield made


def behind(proxy: CuttingProxy, timeout: float = 60) -> RedisStore:
    return RedisStore(proxy.url, namespace=f"t{os.urandom(6).hex()}", timeout=timeout)


@table("fault, again, known", product(FAULTS, [0, 1, 2], [True, False]))
def test_a_step_whose_connection_is_cut_happens_exactly_once(
    proxy: CuttingProxy, fault: str, again: int, known: bool
) -> None:
    keys = [f"{fault} {again} {known}", f"/user/{fault} {again} {known}"]
    proxy.fault = ""
    with behind(proxy) as store, second(store) as other:
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
    with behind(proxy) as store, second(store) as other:
        store.update(["s"], ONE)
        proxy.fault = "late"
        assert store.update(["s"], ONE) == [2]
        proxy.deliver()
        assert other.update(["s"], look) == [2]
        assert store.update(["s"], ONE) == [3]


def test_a_server_that_does_not_answer_in_time_is_an_error_within_the_timeout(proxy: CuttingProxy) -> None:
    asks: list[Callable[[RedisStore], Any]] = [
        *(lambda store: store.update(["s"], ONE), lambda store: store.read("s"), lambda store: store.prune("1d"))
    ]
    stores = [behind(proxy, timeout=3) for _ in asks * 2]
    for store in stores:
        store.update(["s"], ONE)
    for store in stores[3:]:
        store.close()
    proxy.fault = "silent"
    with ThreadPoolExecutor(6) as pool:
        works = [pool.submit(ask, store) for ask, store in zip(asks * 2, stores, strict=True)]
    assert ["did not answer within 3 s" in str(work.exception()) for work in works] == [True] * 6
