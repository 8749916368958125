"""
Many processes with leases of one scope: nothing is over its limit, whatever becomes of them.
"""

import json
import os
import random
import subprocess
import sys
import time

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import pytest

from guardrails import SqliteStore
from guardrails.stores.base import Store
from guardrails.stores.redis.store import RedisStore
from tests.stores import redis_server


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

LIMIT = 1_500
WORKER = (
    """
import os, random, sys, time
from guardrails import Budget, Lease, Leases, Policy, SqliteStore
from guardrails.core.values.errors import GuardrailsError

place, number, log = sys.argv[1], int(sys.argv[2]), os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
if place.startswith("redis://"):
    from guardrails.stores.redis.store import RedisStore
    shared = RedisStore(place, timeout=20.0)
else:
    shared = SqliteStore(place, timeout=20)
ahead = (number - 8) * 3600 / 15
clock = lambda: time.time() + ahead
policy = Policy([], scopes={"tenant": [Budget(max_calls=%d), Lease(time=1.0)]})
store = Leases(shared, clock=clock, look=0.05)
session = policy.session(f"s{number}", scopes={"tenant": "acme"}, store=store, clock=clock)
os.write(1, b"ready\\n")
sys.stdin.readline()
until, n = time.monotonic() + 60, 0
while time.monotonic() < until:
    n += 1
    said = session.call("t", {"n": n}, lambda *_: os.write(log, b"."))
    if said.code == "tenant.budget.max_calls":
        break
    time.sleep(0.002 if said.ok else 0.05)
store.close()
os.write(1, (said.code or "ran").encode())
"""  # noqa: UP031
    % LIMIT
)


class Grounds:
    """
    Where the shared store is: its place, and how it is begun anew.
    """

    def __init__(self, place: str, restart: Callable[[], object], opened: Callable[[], Store]) -> None:
        self.place = place
        self.restart = restart
        self.opened = opened


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=redis_server.needed)])
def grounds(request: Any, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        path = tmp_path / "state.db"

        def restart() -> None:
            SqliteStore(path).close()

        yield Grounds(str(path), restart, lambda: SqliteStore(path))
        return
    server = redis_server.Server("--appendonly", "yes", "--appendfsync", "always")
    try:

        def again() -> None:
            server.kill()
            server.restart()

        yield Grounds(server.url, again, lambda: RedisStore(server.url))
    finally:
        server.remove()


def begun(grounds: Grounds, number: int, log: Path) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", WORKER, grounds.place, str(number), str(log)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)  # noqa: S603


def test_half_of_sixteen_workers_are_killed_and_the_store_restarts(grounds: Grounds, tmp_path: Path) -> None:
    log = tmp_path / "ran"
    log.touch()
    workers = [begun(grounds, number, log) for number in range(16)]
    try:
        # A store that is down when a worker opens it is an error at once: nobody starts during the restart.
        for worker in workers:
            assert cast(IO[bytes], worker.stdout).readline() == b"ready\n"
        for worker in workers:
            cast(IO[bytes], worker.stdin).write(b"\n")
        _wait(lambda: log.stat().st_size > LIMIT // 5)
        doomed = random.Random(5).sample(workers, 8)
        for worker in doomed[:4]:
            worker.kill()
        grounds.restart()
        for worker in doomed[4:]:
            worker.kill()
        said = [worker.communicate(timeout=90) for worker in workers if worker not in doomed]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert {out for out, _ in said} == {b"tenant.budget.max_calls"}, b"\n".join(err for _, err in said).decode()
    ran = log.stat().st_size
    assert ran <= LIMIT
    # What the dead held is burnt: for each at most what it had used, or a 256th of the rest.
    assert ran >= LIMIT // 2
    counted: int = grounds.opened().update(["/tenant/acme"], lambda states: states[0].calls)
    assert counted == LIMIT


def _wait(found: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not found():
        assert time.monotonic() < until
        time.sleep(0.01)


FORKING = """
import json, os, sys
from guardrails import Budget, Lease, Leases, Policy, SqliteStore

policy = Policy([], scopes={"tenant": [Budget(max_calls=2_000), Lease()]})
store = Leases(SqliteStore(sys.argv[1]))
session = policy.session("s", scopes={"tenant": "acme"}, store=store)
ran = 0
for number in range(40):
    ran += session.call("t", {"n": number}, lambda *_: "ran").ok
read, write = os.pipe()
child = os.fork()
if child == 0:
    mine = sum(session.call("t", {"child": number}, lambda *_: "ran").ok for number in range(30))
    store.close()
    os.write(write, str(mine).encode())
    os._exit(0)
os.waitpid(child, 0)
theirs = int(os.read(read, 100))
ran += sum(session.call("t", {"more": number}, lambda *_: "ran").ok for number in range(30))
store.close()
counted = SqliteStore(sys.argv[1]).update(["/tenant/acme"], lambda states: (states[0].calls, len(states[0].reserved)))
print(json.dumps([ran, theirs, *counted]))
"""


def test_a_forked_child_never_uses_the_part_of_its_parent(tmp_path: Path) -> None:
    made = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "state.db")],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(made.stdout) == [70, 30, 100, 0]


ENDING = """
import os, signal, sys
from guardrails import Budget, Lease, Leases, Policy, SqliteStore

policy = Policy([], scopes={"tenant": [Budget(max_calls=2_000), Lease()]})
store = Leases(SqliteStore(sys.argv[1]))
session = policy.session("s", scopes={"tenant": "acme"}, store=store)
session.call("t", {}, lambda *_: "ran")
os.kill(os.getpid(), getattr(signal, sys.argv[2]))
"""


@pytest.mark.parametrize(("ends_by", "kept"), [("SIGINT", 0), ("SIGKILL", 1)])
def test_ctrl_c_gives_back_what_was_not_used_and_a_crash_does_not(tmp_path: Path, ends_by: str, kept: int) -> None:
    path = tmp_path / "state.db"
    subprocess.run([sys.executable, "-c", ENDING, str(path), ends_by], capture_output=True, timeout=60, check=False)  # noqa: S603
    state: Any = SqliteStore(path).update(["/tenant/acme"], lambda states: states[0])
    assert state.calls == 1 - kept
    assert len(state.leases) == kept
