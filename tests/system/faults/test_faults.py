"""
Sixteen workers in four processes on one store that share limits, while processes, disks, servers and networks fail.

`FAULTS_S=600 FAULTS_SEED=7 python -m pytest -s tests/system/faults` goes on for longer, and by other faults.
"""

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from guardrails import RedisStore, SqliteStore
from guardrails.stores import Store
from tests.stores.cutting_proxy import CuttingProxy
from tests.stores.servers import Server, needed
from tests.system.faults.worker import LIMITS, PRICE_USD, TENANT_USD


SECONDS, SEED = float(os.environ.get("FAULTS_S", "4")), int(os.environ.get("FAULTS_SEED", "1"))
ROOT: Final = Path(__file__).parents[3]
PROCESSES: Final = 4
PATIENCE_S: Final = 30.0
"""How long a worker may take to begin, and to end its last step once all faults are over."""

Fault = Callable[[], AbstractContextManager[None]]


def end(process: "subprocess.Popen[bytes]") -> None:
    """
    kill -9.
    """
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


class World:
    """
    The processes, the executions that their tools saw, and what can befall them.
    """

    timeout: float

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chosen = random.Random(SEED)
        self.ran: list[dict[str, Any]] = []
        self.befell = Counter[str]()
        self.begun = threading.Semaphore(0)
        self.faults: dict[str, Fault] = {"kill -9": self.killed, "pause": self.paused}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.readers: list[threading.Thread] = []

    def place(self, process: int) -> str:
        raise NotImplementedError

    def open(self) -> Store:
        raise NotImplementedError

    def close(self) -> None:
        for process in self.processes:
            end(process)
        for reader in self.readers:
            reader.join()

    def start(self, number: int) -> "subprocess.Popen[bytes]":
        settings = {"place": self.place(number), "timeout": self.timeout, "process": number}
        settings["name"] = f"{SEED} {number}.{len(self.readers)}"
        command = [sys.executable, "-m", "tests.system.faults.worker", json.dumps(settings)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.readers.append(threading.Thread(target=self.read, args=(process.stdout,)))
        self.readers[-1].start()
        return process

    def read(self, lines: Any) -> None:
        with lines:
            for line in lines:
                if line == b'"begun"\n':
                    self.begun.release()
                elif line.endswith(b"\n"):
                    self.ran.append(json.loads(line))

    @contextmanager
    def killed(self) -> Iterator[None]:
        number = self.chosen.randrange(PROCESSES)
        end(self.processes[number])
        self.processes[number] = self.start(number)
        yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        process = self.chosen.choice(self.processes)
        process.send_signal(signal.SIGSTOP)
        yield
        process.send_signal(signal.SIGCONT)

    def run(self) -> None:
        """
        Start the workers, let one fault after the other befall them, each at least once, and end both.
        """
        self.processes = [self.start(number) for number in range(PROCESSES)]
        assert all(self.begun.acquire(timeout=PATIENCE_S) for _ in range(PROCESSES))
        coming, over = self.chosen.sample(sorted(self.faults), len(self.faults)), time.monotonic() + SECONDS
        while coming or time.monotonic() < over:
            name = coming.pop() if coming else self.chosen.choice(sorted(self.faults))
            self.befell[name] += 1
            with self.faults[name]():
                time.sleep(self.chosen.uniform(0.05, 0.8))
            time.sleep(self.chosen.uniform(0.0, 0.2))
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        assert [process.wait(PATIENCE_S) for process in self.processes] == [0] * PROCESSES


class SqliteWorld(World):
    """
    A file, for which workers wait for less time than it may be locked.
    """

    timeout = 0.4

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.faults |= {"locked": self.locked, "full disk": self.full}

    def place(self, process: int) -> str:
        return str(self.folder / "state.db")

    def open(self) -> Store:
        return SqliteStore(self.place(0))

    @contextmanager
    def locked(self) -> Iterator[None]:
        with closing(sqlite3.connect(self.place(0), isolation_level=None, timeout=2)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def full(self) -> Iterator[None]:
        # No file may grow beyond what the log has now, as on a full disk; what workers tell goes into a pipe.
        log = self.folder / "state.db-wal"
        self.limit(max(log.stat().st_size if log.exists() else 0, 4096))
        yield
        self.limit(resource.RLIM_INFINITY)

    def limit(self, size: int) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class RedisWorld(World):
    """
    A server that has each commit on its disk before it answers, and a proxy before it for each process.
    """

    timeout = 1.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = Server("--appendonly", "yes", "--appendfsync", "always", folder=folder)
        self.proxies = [CuttingProxy(self.server.port, f"{SEED} {number}") for number in range(PROCESSES)]
        self.faults |= {name: partial(self.switched, name) for name in ("lossy", "paused", "unanswered")}
        self.faults |= {"cut": self.cut, "server killed": self.server_killed, "server paused": self.server_paused}

    def place(self, process: int) -> str:
        return self.proxies[process].url

    def open(self) -> Store:
        return RedisStore(self.server.url, timeout=10)

    def close(self) -> None:
        super().close()
        for proxy in self.proxies:
            proxy.close()
        self.server.remove()

    @contextmanager
    def switched(self, name: str) -> Iterator[None]:
        proxy = self.chosen.choice(self.proxies)
        before = getattr(proxy, name)
        setattr(proxy, name, 0.2 if name == "lossy" else True)
        yield
        setattr(proxy, name, before)

    @contextmanager
    def cut(self) -> Iterator[None]:
        self.chosen.choice(self.proxies).cut_all()
        yield

    @contextmanager
    def server_killed(self) -> Iterator[None]:
        self.server.kill()
        yield
        self.server.start()

    @contextmanager
    def server_paused(self) -> Iterator[None]:
        self.server.pause()
        yield
        self.server.resume()


@pytest.mark.parametrize("kind", [SqliteWorld, pytest.param(RedisWorld, marks=needed)])
def test_no_limit_is_passed_and_no_call_forgotten_whatever_fails(kind: type[World], tmp_path: Path) -> None:
    world = kind(tmp_path)
    try:
        world.run()
        print(len(world.ran), "calls ran;", dict(world.befell))
        assert max(Counter(call["id"] for call in world.ran).values()) == 1, "a call ran twice"
        store = world.open()
        calls, cost = Counter[str](), Counter[str]()
        for call in world.ran:
            keys = [call["session"], "/global/global", *(f"/{name}/{own}" for name, own in call["scopes"].items())]
            calls.update(keys)
            cost.update(dict.fromkeys(keys, PRICE_USD * (call["tool"] == "pay")))
        for key, ran in calls.items():
            counted, spent = store.update([key], lambda states: (states[0].calls, states[0].cost))
            scope = key.split("/")[1] if key.startswith("/") else ""
            # What ran is counted; what was admitted and killed before it ran is counted too.
            assert ran <= counted <= LIMITS.get(scope, 1_000), key
            assert scope != "tenant" or max(cost[key], spent / 1_000_000) <= TENANT_USD + 1e-9, key
        assert any(calls[key] >= LIMITS["user"] for key in calls if key.startswith("/user/")), "no limit was reached"
    finally:
        world.close()
