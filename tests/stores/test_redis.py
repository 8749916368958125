"""
Sessions in a server: what only this store does, and what it says of servers that are not fit for it.
"""

import gc
import os
import re
import signal
import sys
import time

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guardrails import Budget, MemorySink, Policy, Rate, RedisStore, SessionState, StoreError, Tool
from guardrails.core.packing import pack
from guardrails.core.values.errors import MissingExtra, StateUnreadable
from tests.replaying import replay
from tests.stores.redis_server import Server, cluster, in_redis, needed, shared
from tests.tables import table


def spend(states: list[SessionState]) -> list[int]:
    for state in states:
        state.calls += 1
    return [state.calls for state in states]


@pytest.fixture
def store() -> Iterator[RedisStore]:
    with in_redis() as made:
        yield made


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.remove()


def again(store: RedisStore, **settings: Any) -> RedisStore:
    return RedisStore(store.place, namespace=store.namespace, **settings)


def test_without_the_package_redis_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.exceptions", None)
    with pytest.raises(MissingExtra, match=re.escape('pip install "toolcall-guardrails[redis]"')):
        RedisStore("redis://127.0.0.1:1/0")


URLS = ("", "state.db", "http://h:1/0", "redis://h/name", "redis://h/1/2", "redis://:hidden/x@h:1/0", "redis://h:port")


@needed
@table(
    ("given", "said"),
    [
        *((url, "no URL of a server") for url in (*URLS, "redis://u:hid@den@[h", "rediss://h/-1")),
        *((given, "needs a URL") for given in (5, None, b"redis://h:1/0")),
    ],
)
def test_what_is_no_url_of_a_server_is_refused_without_its_password(given: Any, said: str) -> None:
    with pytest.raises(StoreError, match=said) as error:
        RedisStore(given)
    assert "hid" not in str(error.value)


@needed
def test_what_one_store_changed_another_finds_though_it_had_the_state_before(store: RedisStore) -> None:
    with again(store) as other:
        counts = [where.update(["a", "b"], spend) for where in (store, other, store, store, other)]
    assert counts == [[n, n] for n in range(1, 6)]


@needed
def test_a_client_of_the_program_can_be_given() -> None:
    with (
        shared().client(decode_responses=True) as client,
        RedisStore(client, namespace=f"t{os.urandom(6).hex()}") as store,
    ):
        assert store.update(["a"], spend) == [1]
        store.forget("a")


@needed
def test_sessions_that_nothing_changed_for_long_are_pruned_and_scopes_if_asked(store: RedisStore) -> None:
    for key in ("old", "new", "/user/u1"):
        store.update([key], spend)
    for key in ("old", "/user/u1"):
        shared().ask("HSET", f"{{{store.namespace}}}:h:{key}", "at", int((store.clock() - 3_600) * 1000))
    assert [store.prune("2h"), store.prune("30m", prefix="x"), store.prune("30m")] == [0, 0, 1]
    assert [one.key for one in store.entries()] == ["/user/u1", "new"]
    assert store.prune("30m", scopes=True) == 1
    assert len(store) == 1
    with pytest.raises(ValueError, match="duration"):
        store.prune("soon")


TENANTS = ("acme", "a b", "{x}", "a%20b", "日本", "", *map(str, range(20)))


@needed
def test_all_that_a_tenant_has_is_in_one_slot_and_tenants_are_in_slots_of_their_own(store: RedisStore) -> None:
    from redis.crc import key_slot

    slots = set()
    for tenant in TENANTS:
        own = store.tenant(tenant)
        own.update(["s", f"/tenant/{tenant}"], spend)
        with shared().client() as client:
            names = list(client.scan_iter(f"{{{own.namespace}}}:*", count=10_000))
        assert len(names) == 4
        slots |= {key_slot(name) for name in names}
    assert len(slots) == len(TENANTS)
    assert len(store) == 0


@needed
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
        assert abs(store.clock() - time.time()) < 60
        assert min(node.ask("DBSIZE") for node in nodes) >= len(TENANTS)


@needed
@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_server_that_could_drop_states_is_refused(server: Server, policy: str) -> None:
    with RedisStore(server.url) as store:
        server.ask("CONFIG", "SET", "maxmemory-policy", policy)
        assert store.update(["a"], spend) == [1]  # It is connected already.
        with pytest.raises(StoreError, match=f"may drop states .*maxmemory-policy `{policy}`.*`noeviction`"):
            RedisStore(server.url)


@needed
def test_a_replica_that_takes_writes_and_loses_them_later_is_refused(server: Server) -> None:
    replica = Server("--replicaof", "127.0.0.1", str(server.port), "--replica-read-only", "no")
    try:
        with pytest.raises(StoreError, match=r"is a replica whose writes are lost .* give the address of the primary"):
            RedisStore(replica.url)
        replica.ask("REPLICAOF", "NO", "ONE")
        with RedisStore(replica.url) as store:
            assert store.update(["a"], spend) == [1]
    finally:
        replica.remove()


@needed
@pytest.mark.parametrize(
    ("given", "said"),
    [("", "did not let this user in"), (":wrong@", "did not let this user in: correct user and password")],
)
def test_a_password_that_is_missing_or_wrong_is_told_and_never_shown(server: Server, given: str, said: str) -> None:
    server.ask("CONFIG", "SET", "requirepass", "hidden")
    with pytest.raises(StoreError, match=said) as error:
        RedisStore(server.url.replace("//", f"//{given}"))
    assert "wrong" not in str(error.value)
    with RedisStore(server.url.replace("//", "//:hidden@"), timeout=1) as store:
        assert store.update(["a"], spend) == [1]
        server.kill()
        with pytest.raises(StoreError) as error:
            store.update(["a"], spend)
    assert "hidden" not in f"{error.value} {error.value.__cause__} {store!r} {store.place}"


@needed
def test_a_full_server_refuses_new_steps_keeps_what_was_admitted_and_goes_on_once_there_is_room(server: Server) -> None:
    with RedisStore(server.url) as store:
        store.update(["a", "b"], spend)
        server.ask("CONFIG", "SET", "maxmemory", "1")
        for _ in range(2):
            with pytest.raises(
                StoreError,
                match=r"is full: free some space, or `prune` sessions that are over; what was admitted before is kept \(",
            ):
                store.update(["a", "b"], spend)
        store.forget("b")
        server.ask("CONFIG", "SET", "maxmemory", "0")
        assert store.update(["a", "b"], spend) == [2, 1]


@needed
@table("kept", ["toolcall-guardrails 3", "of another program"])
def test_a_namespace_of_a_newer_version_or_another_program_is_refused(kept: str) -> None:
    name = f"t{os.urandom(6).hex()}"
    shared().ask("SET", f"{{{name}}}:store", kept)
    with pytest.raises(StoreError, match=r"what this version cannot read .*use another `namespace`"):
        RedisStore(shared().url, namespace=name)


@needed
@pytest.mark.parametrize("value", [b"", b"theirs", b"x" * 100])
def test_a_state_that_is_none_is_told_by_its_name_and_left(store: RedisStore, value: bytes) -> None:
    name = f"{{{store.namespace}}}:h:s1"
    shared().ask("HSET", name, "s", value)
    with pytest.raises(StateUnreadable, match="the state of `s1` in the store `redis://"):
        store.update(["s1"], spend)
    assert shared().ask("HGET", name, "s") == value
    assert store.update(["s2"], spend) == [1]


@needed
def test_states_that_0_2_0_kept_as_strings_and_a_scope_with_its_amounts_in_its_state_go_on(store: RedisStore) -> None:
    name, state = f"{{{store.namespace}}}", SessionState(n=7, calls=5, cost=100, reserved={"calls": {"max_cost": 30}})
    shared().ask("SET", f"{name}:store", "toolcall-guardrails 1")
    shared().ask("SET", f"{name}:s:/user/u1", b"x" * 16 + b"1700000000000" + pack(state))
    shared().ask("ZADD", f"{name}:keys", 0, "/user/u1")
    policy = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=7, max_cost_usd=1)]})
    with again(store) as own:
        session = policy.session("s", scopes={"user": "u1"}, store=own)
        codes = [session.call("t", {"n": n}, lambda *_: "ok").code for n in range(3)]
    assert codes == [None, None, "user.budget.max_calls"]
    assert used(store, "/user/u1") == (7, 100, 30)


def used(store: RedisStore, key: str) -> tuple[int, int, int]:
    def look(states: list[SessionState]) -> tuple[int, int, int]:
        return states[0].calls, states[0].cost, states[0].reserved_by_children("max_cost")

    return store.update([key], look)


@needed
@pytest.mark.usefixtures("quick_switches")
def test_stores_that_share_scopes_count_exactly_by_two_round_trips_a_call_and_replay(store: RedisStore) -> None:
    """
    Each record has its true place in the scopes, which is known only once the step is kept.
    """
    many = Budget(max_calls=100_000)
    scopes: dict[str, list[Any]] = {
        "user": [Budget(max_cost_usd=1_000)],
        "tenant": [many, Rate(max_calls_per_minute=1_000_000)],
    }
    policy, sink = Policy([many], scopes=scopes, tools=[Tool(name="pay", cost_usd=0.01)]), MemorySink()
    before, begun = shared().ask("INFO", "commandstats"), time.monotonic()

    def work(own: str) -> int:
        with again(store, timeout=60) as other:
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


@needed
def test_calls_and_responses_of_several_change_nothing_of_a_scope_but_its_amounts(store: RedisStore) -> None:
    policy = Policy([], scopes={"user": [Budget(max_calls=100, max_cost_usd=1)]})
    stores = [store, again(store)]
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, store=own) for n, own in enumerate(stores)]
    versions = set()
    for n in range(3):
        for session in sessions:
            session.charge(model="gpt-5-mini", cost_usd=0.01)
            assert session.call("t", {"n": n}, lambda *_: "ok").ok
            versions.add(shared().ask("HGET", f"{{{store.namespace}}}:h:/user/u1", "v"))
    assert len(versions) == 1
    assert used(store, "/user/u1") == (6, 60_000, 0)
    stores[1].close()


@needed
def test_the_last_calls_of_a_scope_are_given_to_one_each(store: RedisStore) -> None:
    """
    Each store has the scope as it was some calls ago; at the limit the server knows better.
    """
    policy = Policy([Budget(max_calls=100)], scopes={"user": [Budget(max_calls=10), Rate(max_calls_per_minute=1_000)]})
    stores = [again(store) for _ in range(4)]
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, store=own) for n, own in enumerate(stores)]
    answers = [session.call("t", {"n": n}, lambda *_: "ok") for n in range(4) for session in sessions]
    codes = [answer.code for answer in answers if not answer.ok]
    assert codes == ["user.budget.max_calls"] * 6
    told = [answer.to_dict().get("limit_reached", False) for answer in answers[:10]]
    assert told == [False] * 9 + [True]
    assert store.update(["/user/u1"], lambda states: (states[0].calls, states[0].n)) == (10, 26)
    for own in stores:
        own.close()


@needed
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
            try:
                armed = True
                store.update(["a", "b"], spend)
                armed = False
                done += 1
            except KeyboardInterrupt:
                interrupted += 1
            armed = False
            first, second = store.update(["a", "b"], lambda states: [state.calls for state in states])
            assert first == second
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    gc.collect()  # A connection that was interrupted while the package made it is open until here.
    assert interrupted
    assert done <= store.update(["a"], lambda states: states[0].calls) <= done + interrupted
