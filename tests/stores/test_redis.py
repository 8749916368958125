"""
Sessions in a server: what only this store does, and what it says of servers that are not fit for it.
"""

import gc
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, RedisStore, SessionState, StoreError
from guardrails.core.values.errors import MissingExtra, StateUnreadable
from guardrails.stores.redis.explained import COMMANDS
from tests.stores.redis_server import Server, free_port, in_redis, needed, shared
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
@pytest.mark.parametrize("options", ["nothing=1", "db=x", "socket_timeout=soon"])
def test_an_option_of_a_url_that_is_none_is_told(options: str) -> None:
    with pytest.raises(StoreError, match="an option that"):
        RedisStore(f"redis://:hidden@127.0.0.1:1/0?{options}")


@needed
def test_options_of_a_pool_and_of_its_connections_may_be_in_the_url() -> None:
    url = f"{shared().url}?max_connections=5&socket_timeout=9&protocol=3&health_check_interval=3&client_name=agents"
    with RedisStore(url, namespace=f"t{os.urandom(6).hex()}") as store:
        assert store.update(["a"], spend) == [1]
        assert store.update([], spend) == []


@needed
@pytest.mark.skipif(os.name != "posix", reason="sockets of Unix")
def test_a_socket_of_unix_may_be_its_url(tmp_path: Path) -> None:
    server = Server("--unixsocket", str(tmp_path / "s"))
    try:
        with RedisStore(f"unix://{tmp_path / 's'}") as store:
            assert store.update(["a"], spend) == [1]
            server.kill()
            with pytest.raises(StoreError, match="cannot be reached"):
                RedisStore(store.place)
    finally:
        server.remove()


@pytest.mark.parametrize("namespace", ["", "a b", "{a}", "a\n", "x" * 101])
def test_an_odd_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(StoreError, match="is no namespace"):
        RedisStore("redis://127.0.0.1:1/0", namespace=namespace)


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
def test_a_state_that_was_forgotten_and_made_anew_elsewhere_is_not_taken_for_the_old_one(store: RedisStore) -> None:
    with again(store) as other:
        store.update(["a"], spend)
        store.update(["a"], spend)
        other.forget("a")
        other.update(["a"], spend)
        assert store.update(["a"], spend) == [2]
        other.forget("a")
        assert store.update(["a"], spend) == [1]


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
def test_it_can_be_closed_and_used_again(store: RedisStore) -> None:
    store.update(["a"], spend)
    store.close()
    assert store.update(["a"], spend) == [2]


@needed
def test_its_clock_is_the_servers(store: RedisStore) -> None:
    seconds, micros = shared().ask("TIME")
    assert abs(store.clock() - (seconds + micros / 1e6)) < 5
    session = Policy([Budget(max_calls=1)]).session("s", store=store, clock=store.clock)
    assert session.call("t", {}, lambda *_: "ok").ok


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
@pytest.mark.system
def test_sentinels_that_have_a_replica_take_over_are_followed(server: Server, tmp_path: Path) -> None:
    import redis.sentinel

    sentinels: Any = redis.sentinel.Sentinel
    replica = Server("--replicaof", "127.0.0.1", str(server.port))
    rules = tmp_path / "sentinel.conf"
    watched = f"sentinel monitor main 127.0.0.1 {server.port} 1"
    times = "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000"
    rules.write_text(f"{watched}\n{times}\n")
    sentinel = Server(config=rules)
    try:
        wait_for(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up")
        found = sentinels([("127.0.0.1", sentinel.port)], socket_timeout=1)
        wait_for(lambda: found.discover_slaves("main"))
        with RedisStore(found.master_for("main"), timeout=30) as store:
            store.update(["s"], spend)
            wait_for(lambda: replica.ask("GET", "{guardrails}:s:s") is not None)
            server.kill()
            assert store.update(["s"], spend) == [2]
            assert replica.ask("INFO", "replication")["role"] == "master"
    finally:
        sentinel.remove()
        replica.remove()


@needed
@pytest.mark.system
def test_a_cluster_is_found_from_any_of_its_nodes() -> None:
    # The bus of a node is 10,000 ports above its own.
    ports = [port for port in (free_port() for _ in range(200)) if port < 50_000][:3] or pytest.skip("no low ports")
    nodes = [Server("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", port=port) for port in ports]
    try:
        share = 16_384 // len(nodes) + 1
        for n, node in enumerate(nodes):
            node.ask("CLUSTER", "ADDSLOTSRANGE", n * share, min((n + 1) * share, 16_384) - 1)
            node.ask("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
        wait_for(lambda: all(b"cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in nodes))
        stores = [RedisStore(node.url, timeout=10) for node in nodes]
        counts = [store.update(["s", "/user/u1"], spend) for store in stores * 2]
        assert counts == [[n, n] for n in range(1, 2 * len(nodes) + 1)]
        assert [len(list(store.entries())) for store in stores] == [2] * len(nodes)
        for store in stores:
            store.close()
    finally:
        for node in nodes:
            node.remove()


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
@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl"])
def test_a_server_that_drops_only_what_has_an_end_is_fit(server: Server, policy: str) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", policy)
    with RedisStore(server.url) as store:
        store.update(["a"], spend)
        assert server.ask("TTL", "{guardrails}:s:a") == -1


@needed
def test_it_needs_no_more_of_the_server_than_it_says(server: Server) -> None:
    server.ask("ACL", "SETUSER", "agent", "on", ">hidden", "~{guardrails}:*", *COMMANDS.split())
    url = server.url.replace("//", "//agent:hidden@")
    with RedisStore(url) as store, RedisStore(url) as other:

        def work(one: RedisStore) -> None:
            for _ in range(50):
                one.update(["a"], spend)

        threads = [threading.Thread(target=work, args=(one,)) for one in (store, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.update(["a"], spend) == [101]
        assert (len(store), len(list(store.entries())), store.prune("1d")) == (1, 1, 0)
        store.forget("a")
        assert store.read("a") is None
    log = server.ask("ACL", "LOG")
    assert log == [], log


@needed
@pytest.mark.parametrize("left_out", [word for word in COMMANDS.split() if word not in ("+ping", "+select")])
def test_a_user_who_may_not_do_all_of_it_is_told_what_and_nothing_is_half_written(left_out: str) -> None:
    server = shared()
    user = f"u{os.urandom(4).hex()}"
    may = [word for word in COMMANDS.split() if word != left_out]
    server.ask("ACL", "SETUSER", user, "on", "nopass", f"~{{{user}}}:*", *may)
    url = server.url.replace("//", f"//{user}:x@")
    try:
        with RedisStore(url, namespace=user, timeout=2) as store:
            store.update(["a", "b"], spend)
            store.update(["a", "b"], spend)
    except StoreError as error:
        assert "does not let this user do it: `ACL SETUSER" in str(error)  # noqa: PT017
    with RedisStore(server.url, namespace=user) as other:
        assert other.update(["a", "b"], lambda states: states[0].calls - states[1].calls) == 0


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
def test_a_server_that_cannot_save_is_told_of() -> None:
    server = Server("--save", "3600 1")
    try:
        with RedisStore(server.url) as store:
            store.update(["a"], spend)
            shutil.rmtree(server.folder)
            server.ask("BGSAVE")
            wait_for(lambda: server.ask("INFO", "persistence")["rdb_last_bgsave_status"] == "err")
            with pytest.raises(
                StoreError, match="cannot save to its disk, and takes no writes until it can: see its log"
            ):
                store.update(["a"], spend)
    finally:
        server.remove()


def saying(line: bytes) -> Iterator[str]:
    """
    The URL of what answers every command with *line*.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    try:
                        while client.recv(1 << 16):
                            client.sendall(line)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
        listening.shutdown(socket.SHUT_RDWR)


@needed
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"-LOADING Redis is loading the dataset in memory", "is still loading its data"),
        (b"-MASTERDOWN Link with MASTER is down", "has lost its primary"),
        (b"-BUSY Redis is busy running a script.", "SCRIPT KILL"),
        (b"-CLUSTERDOWN The cluster is down", "CLUSTER INFO"),
        (b"-TRYAGAIN Multiple keys request during rehashing of slot", "moving these keys"),
        (b"-NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
        (b"-READONLY You can't write against a read only replica.", "the address of the primary"),
        (b"-DENIED Redis is running in protected mode", "without a password: give it one"),
        (b"-ERR AUTH <password> called without any password configured for the default user.", "has no password"),
        (b"-ERR max number of clients reached", "maxclients"),
        (b"-ERR DB index is out of range", "no such database"),
        (b"-ERR unknown command 'EVALSHA'", "Redis 6 or later"),
        (b"-ERR something new", r"cannot be used \(ERR something new\)"),
        (b"HTTP/1.1 400 Bad Request", "does not answer as a server of Redis"),
        (b"$not a number", "does not answer as a server of Redis"),
        (b"*1\r\n$-1", "cannot be used|does not answer"),
        (b"+OK", "cannot be used|does not answer"),
        (b":1", "cannot be used|does not answer"),
    ],
)
def test_what_a_server_answers_is_explained_with_what_to_do(line: bytes, said: str) -> None:
    for url in saying(line + b"\r\n"):
        with pytest.raises(StoreError, match=said):
            RedisStore(url, timeout=0.3)


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
@pytest.mark.parametrize("key", ["store", "writers", "keys", "turns", "s:a"])
def test_keys_of_another_program_are_left_as_they_are(key: str) -> None:
    name = f"t{os.urandom(6).hex()}"
    shared().ask("RPUSH", f"{{{name}}}:{key}", "theirs")
    with pytest.raises(StoreError, match="the keys of another program: use another `namespace`"):
        RedisStore(shared().url, namespace=name).update(["a", "b"], spend)
    assert shared().ask("LRANGE", f"{{{name}}}:{key}", 0, -1) == [b"theirs"]
    assert shared().ask("EXISTS", f"{{{name}}}:s:b") == 0


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


@needed
def test_workers_that_die_in_turn_and_in_line_hold_the_others_up_for_a_moment_only(store: RedisStore) -> None:
    stem = f"{{{store.namespace}}}:"
    store.update(["hot"], spend)
    with shared().client() as client:
        seconds, micros = client.time()
        now = seconds * 1000 + micros // 1000
        client.hset(stem + "turns", "hot", b"deadbody" + str(now).encode())
        client.zadd(stem + "line", {b"hot\0%016d%b" % (now, b"dead%04d" % n): 0 for n in range(50)})
    with again(store) as other:
        assert other.update(["hot"], spend) == [2]
        assert shared().ask("ZCARD", stem + "line") == 0, "they do not hold others up one after the other"
        assert [store.update(["hot"], spend) for _ in range(2)] == [[3], [4]]


@needed
def test_a_turn_from_the_time_of_another_servers_clock_holds_nobody_up(store: RedisStore) -> None:
    store.update(["hot"], spend)
    shared().ask("HSET", f"{{{store.namespace}}}:turns", "hot", b"deadbody9999999999999")
    with again(store, timeout=0.5) as other:
        assert other.update(["hot"], spend) == [2]


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
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_from_inside_of_a_step_is_told_and_its_parent_commits(store: RedisStore) -> None:
    read, write = os.pipe()

    def forks(states: list[SessionState]) -> int:
        spend(states)
        return os.fork()

    try:
        child = store.update(["a"], forks)
    except StoreError as error:
        os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"forked in the middle of an update" in os.read(read, 1_000)
    assert store.update(["a"], spend) == [2]
    os.close(read)
    os.close(write)


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
def test_the_states_that_are_kept_here_are_only_so_many() -> None:
    with in_redis(live=3) as store:
        for n in range(10):
            store.update([f"s{n}", "/user/u1"], spend)
        assert len(store._live._held) == 3
        assert store.update(["s0", "/user/u1"], spend) == [2, 11]


@needed
def test_a_policy_keeps_its_sessions_and_scopes_there(store: RedisStore) -> None:
    policy = Policy([Budget(max_calls=2)], scopes={"user": [Budget(max_calls=3)]})
    codes = []
    for n in range(3):
        with again(store) as own, policy.session(f"s{n}", scopes={"user": "u1"}, store=own) as session:
            codes += [session.call("t", {"n": m}, lambda *_: "ok").code for m in range(3)]
    assert codes == [None, None, "budget.max_calls", None, *["user.budget.max_calls"] * 5]
    assert {one.key for one in store.entries()} >= {"s0", "/user/u1"}
