"""
Sessions in a server: what only this store does, and what it says of servers that are not fit for it.
"""

import gc
import os
import re
import signal
import subprocess
import sys
import threading

from collections.abc import Iterator
from typing import Any

import pytest

from guardrails import Budget, Policy, RedisStore, SessionState, StoreError
from guardrails.core.values.errors import MissingExtra, StateUnreadable
from tests.stores.redis_server import Server, in_redis, needed, shared
from tests.stores.test_redis_faults import wait_for


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


@pytest.mark.system
def test_the_library_does_not_import_the_package_redis_before_a_store_is_made() -> None:
    code = "import sys, guardrails; guardrails.RedisStore; print('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"


def test_without_the_package_redis_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.backoff", None)
    with pytest.raises(MissingExtra, match=re.escape('pip install "toolcall-guardrails[redis]"')):
        RedisStore("redis://127.0.0.1:1/0")


@needed
@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "state.db",
            "http://h:1/0",
            "redis://h/name",
            "redis://h/1/2",
            "redis://:hidden/x@h:1/0",
            "redis://h:port",
        ),
        *("redis://u:hid@den@[h", "rediss://h/-1"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError, match="no URL of a server") as error:
        RedisStore(url)
    assert "hid" not in str(error.value)


@needed
def test_what_is_neither_a_url_nor_a_client_is_refused() -> None:
    import redis.asyncio

    for given in (5, None, b"redis://h:1/0", redis.asyncio.Redis()):
        with pytest.raises(StoreError, match="needs a URL"):
            RedisStore(given)


@needed
def test_two_namespaces_of_one_server_are_two_stores(store: RedisStore) -> None:
    with in_redis() as other:
        assert [store.update(["a"], spend), other.update(["a"], spend)] == [[1], [1]]
        other.forget("a")
        assert (len(store), len(other)) == (1, 0)


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
        assert "127.0.0.1" in repr(store)


@needed
def test_sessions_that_nothing_changed_for_long_are_pruned_and_scopes_if_asked(store: RedisStore) -> None:
    for key in ("old", "new", "/user/u1"):
        store.update([key], spend)
    for key in ("old", "/user/u1"):
        name, hour_ago = f"{{{store.namespace}}}:s:{key}", f"{int((store.clock() - 3_600) * 1000):013}".encode()
        with shared().client() as client:
            client.setrange(name, 16, hour_ago)
    told: list[int] = []
    assert [store.prune("2h"), store.prune("30m", prefix="x"), store.prune("30m", progress=told.append)] == [0, 0, 1]
    assert told == [1]
    assert [one.key for one in store.entries()] == ["/user/u1", "new"]
    assert store.prune("30m", scopes=True) == 1
    assert len(store) == 1
    with pytest.raises(ValueError, match="duration"):
        store.prune("soon")


@needed
def test_all_keys_of_a_store_are_in_one_slot_of_a_cluster(store: RedisStore) -> None:
    from redis.crc import key_slot

    with again(store) as other:
        for _ in range(3):
            store.update(["s", "/user/u1"], spend)
            other.update(["s", "/user/u1"], spend)
    with shared().client() as client:
        client.hset(f"{{{store.namespace}}}:turns", "s", b"deadbody" + b"0")
        names = list(client.scan_iter(f"*{store.namespace}*"))
    assert len(names) >= 5
    assert {key_slot(name) for name in names} == {key_slot(store.namespace.encode())}


@needed
@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_server_that_could_drop_states_is_refused(server: Server, policy: str) -> None:
    with RedisStore(server.url) as store:
        server.ask("CONFIG", "SET", "maxmemory-policy", policy)
        assert store.update(["a"], spend) == [1]  # It is connected already.
        store.close()
        for ask in (lambda: RedisStore(server.url), lambda: store.update(["a"], spend)):
            with pytest.raises(StoreError, match=f"may drop states .*maxmemory-policy `{policy}`.*`noeviction`"):
                ask()


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
    ("given", "said"), [("", "wants a user and a password"), (":wrong@", "does not accept this user and password")]
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
            store._ask(lambda wire, limit: wire.ask(limit / 100, b"PING"))
    assert "hidden" not in f"{error.value} {error.value.__cause__} {store!r} {store.place}"


@needed
def test_a_full_server_refuses_new_steps_keeps_what_was_admitted_and_goes_on_once_there_is_room(server: Server) -> None:
    with RedisStore(server.url) as store:
        store.update(["a", "b"], spend)
        server.ask("CONFIG", "SET", "maxmemory", "1")
        for _ in range(2):
            with pytest.raises(StoreError, match=r"is full \(maxmemory\): give it more, or `prune`"):
                store.update(["a", "b"], spend)
        store.forget("b")
        server.ask("CONFIG", "SET", "maxmemory", "0")
        assert store.update(["a", "b"], spend) == [2, 1]


@needed
@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"store": "toolcall-guardrails 2"}, "what this version cannot read .*upgrade, or use another `namespace`"),
        ({"store": "of another program"}, "what this version cannot read"),
    ],
)
def test_a_namespace_of_a_newer_version_or_another_program_is_refused(kept: dict[str, str], said: str) -> None:
    name = f"t{os.urandom(6).hex()}"
    for key, value in kept.items():
        shared().ask("SET", f"{{{name}}}:{key}", value)
    with pytest.raises(StoreError, match=said):
        RedisStore(shared().url, namespace=name)


@needed
@pytest.mark.parametrize("value", [b"", b"theirs", b"x" * 100])
def test_a_state_that_is_none_is_told_by_its_name_and_left(store: RedisStore, value: bytes) -> None:
    name = f"{{{store.namespace}}}:s:s1"
    shared().ask("SET", name, value)
    with pytest.raises(StateUnreadable, match="the state of `s1` in the store `redis://"):
        store.update(["s1"], spend)
    assert shared().ask("GET", name) == value
    assert store.update(["s2"], spend) == [1]


@needed
def test_names_of_any_kind_are_kept_apart(store: RedisStore) -> None:
    names = ["a", "ä", "a b", "a\nb", "{x}y", "\ud800", "s:a", "a\0b", "/user/a", "日本", "x" * 500]
    for name in names:
        store.update([name], spend)
    assert sorted(one.key for one in store.entries()) == sorted(names)
    assert all(store.update([name], spend) == [2] for name in names)


TOGETHER = """
import json, os, sys, time
from guardrails import RedisStore

url, name, own, seconds = sys.argv[1:]

def spend(states):
    for state in states:
        state.calls += 1

with RedisStore(url, namespace=name, timeout=60) as store:
    store.update([own, "/user/u1"], spend)
    print("ready", flush=True)
    sys.stdin.readline()
    until, n = time.monotonic() + float(seconds), 1
    while time.monotonic() < until:
        store.update([own, "/user/u1"], spend)
        n += 1
    print(n, flush=True)
"""


def workers(store: RedisStore, number: int, seconds: float) -> "list[subprocess.Popen[str]]":
    command = [sys.executable, "-c", TOGETHER, store.place, store.namespace]
    started = [
        subprocess.Popen([*command, f"s{n}", str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(number)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    return started


@needed
def test_processes_that_want_one_state_all_the_time_count_exactly_and_none_starves(store: RedisStore) -> None:
    counts = [int(one.communicate(timeout=60)[0]) for one in workers(store, 4, 1.5)]
    own = [store.update([f"s{n}"], lambda states: states[0].calls) for n in range(4)]
    assert own == counts
    assert store.update(["/user/u1"], lambda states: states[0].calls) == sum(counts)
    # Without turns, the one that committed last has the only fresh copy, and does so again and again.
    assert min(counts) / max(counts) > 0.3


@needed
def test_processes_that_are_killed_leave_every_step_whole(store: RedisStore) -> None:
    started = workers(store, 4, 60)
    wait_for(lambda: store.update(["/user/u1"], lambda states: states[0].calls) > 100)
    for one in started[:2]:
        one.send_signal(signal.SIGKILL)
        one.communicate()
    before = store.update(["/user/u1"], lambda states: states[0].calls)
    wait_for(lambda: store.update(["/user/u1"], lambda states: states[0].calls) > before + 100)
    for one in started[2:]:
        one.kill()
        one.communicate()
    own = [store.update([f"s{n}"], lambda states: states[0].calls) for n in range(4)]
    assert store.update(["/user/u1"], lambda states: states[0].calls) == sum(own)


@needed
def test_threads_that_want_one_state_take_turns(store: RedisStore) -> None:
    counts = [0] * 8
    ended = threading.Event()

    def work(n: int) -> None:
        while not ended.is_set():
            store.update([f"s{n}", "/user/u1"], spend)
            counts[n] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(counts) > 400)
    ended.set()
    for thread in threads:
        thread.join()
    assert store.update(["/user/u1"], lambda states: states[0].calls) == sum(counts)
    assert min(counts) > 0.5 * max(counts)


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


@needed
def test_a_policy_keeps_its_sessions_and_scopes_there(store: RedisStore) -> None:
    policy = Policy([Budget(max_calls=2)], scopes={"user": [Budget(max_calls=3)]})
    codes = []
    for n in range(3):
        with again(store) as own, policy.session(f"s{n}", scopes={"user": "u1"}, store=own) as session:
            codes += [session.call("t", {"n": m}, lambda *_: "ok").code for m in range(3)]
    assert codes == [None, None, "budget.max_calls", None, *["user.budget.max_calls"] * 5]
    assert {one.key for one in store.entries()} >= {"s0", "/user/u1"}
