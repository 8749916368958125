"""
Sixteen workers in four processes on one store that share limits, while processes, servers and networks fail.

`FAULTS_S=600 FAULTS_SEED=7 python -m pytest -s tests/system/faults` goes on for longer, and by other faults.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from guardrails.stores.places import store_at
from tests.children import PATIENCE_S, ROOT, until
from tests.stores.cutting_proxy import CuttingProxy
from tests.stores.servers import Postgres, Server
from tests.system.faults.worker import LIMIT, LIMIT_USD


SECONDS, SEED = float(os.environ.get("FAULTS_S", "4")), os.environ.get("FAULTS_SEED", "1")
PROCESSES: Final = 4
TIMEOUTS: Final = {"sqlite": 0.4, "redis": 1.0, "postgres": 1.0}
"""Workers wait for less time than a fault may last."""


class World:
    """
    The processes, their store, and what can befall them.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.log, self.started = kind, folder / "ran", 0
        self.log.touch()
        self.server: Any = None
        if kind != "sqlite":
            self.server = Postgres() if kind == "postgres" else Server("--appendonly", "yes", "--appendfsync", "always")
        self.place = str(folder / "state.db") if self.server is None else self.server.url
        self.proxy = CuttingProxy(self.server.port, SEED) if kind == "redis" else None
        store_at(self.place).close()
        self.processes = [self.start() for _ in range(PROCESSES)]

    def start(self) -> "subprocess.Popen[bytes]":
        self.started += 1
        place = self.place if self.proxy is None else self.proxy.url
        given = (place, TIMEOUTS[self.kind], f"{SEED}.{self.started}", self.log)
        command = [sys.executable, "-m", "tests.system.faults.worker", *map(str, given)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT)

    def faults(self) -> list[str]:
        """
        The names of those that this store has.
        """
        own = {"sqlite": ["locked"], "redis": ["stopped", "crashed", "lossy", "unanswered", "cut"]}
        return ["killed", "paused", *own.get(self.kind, ["stopped", "crashed"])]

    @contextmanager
    def fault(self, name: str, number: int) -> Iterator[None]:
        """
        The fault *name*, for as long as the context lasts, of the process *number* if it is one of a process.
        """
        process = self.processes[number]
        match name:
            case "killed":
                process.kill()
                process.communicate()
                self.processes[number] = self.start()
                yield
            case "paused":
                process.send_signal(signal.SIGSTOP)
                yield
                process.send_signal(signal.SIGCONT)
            case "stopped":
                self.server.pause()
                yield
                self.server.resume()
            case "crashed":
                self.server.kill()
                yield
                self.server.start()
            case "locked":
                with closing(sqlite3.connect(self.place, isolation_level=None, timeout=9)) as database:
                    database.execute("BEGIN IMMEDIATE")
                    yield
            case "cut" if self.proxy is not None:
                self.proxy.cut_all()
                yield
            case _:
                setattr(self.proxy, name, 0.2 if name == "lossy" else True)
                yield
                setattr(self.proxy, name, 0)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        if self.proxy is not None:
            self.proxy.__exit__()
        if self.server is not None:
            self.server.remove()


@pytest.mark.parametrize("kind", TIMEOUTS)
def test_no_limit_is_passed_and_no_call_forgotten_or_run_twice_whatever_fails(kind: str, tmp_path: Path) -> None:
    world, chosen = World(kind, tmp_path), random.Random(SEED)
    try:
        until(world.log.read_bytes)
        coming, over = world.faults(), time.monotonic() + SECONDS
        # However slow the machine is, it goes on until a worker has left the first user, whose limit is reached by then.
        while coming or time.monotonic() < over or b"u1 " not in world.log.read_bytes():
            assert time.monotonic() < over + PATIENCE_S, "no worker gets on"
            name = coming.pop() if coming else chosen.choice(world.faults())
            with world.fault(name, chosen.randrange(PROCESSES)):
                time.sleep(chosen.uniform(0.05, 0.8))
            time.sleep(chosen.uniform(0.0, 0.2))
        for process in world.processes:
            process.communicate(timeout=PATIENCE_S)
        assert [process.returncode for process in world.processes] == [0] * PROCESSES
        ran = [line.split() for line in world.log.read_text().splitlines()]
        assert max(Counter(call_id for _, _, call_id in ran).values()) == 1, "a call ran twice"
        calls, paid = Counter(user for user, _, _ in ran), Counter(user for user, tool, _ in ran if tool == "pay")
        with store_at(world.place, timeout=PATIENCE_S) as store:
            held = store.update(
                [f"/user/{user}" for user in calls],
                lambda states: [(one.calls, one.cost + one.reserved_by_children("max_cost")) for one in states],
            )
        for (user, count), (counted, cost) in zip(calls.items(), held, strict=True):
            # What ran is counted; what was admitted and killed before it ran is counted too.
            assert count <= counted <= LIMIT, user
            assert max(paid[user] / 100, cost / 1_000_000) <= LIMIT_USD + 1e-9, user
        assert any(counted == LIMIT or cost == LIMIT_USD * 1_000_000 for counted, cost in held), "no limit was reached"
    finally:
        world.close()
