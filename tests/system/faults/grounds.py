"""
What stores stand on, and what can befall it.
"""

import random
import resource
import sqlite3

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from guardrails import RedisStore, SqliteStore
from guardrails.stores import Store
from tests.stores.cutting_proxy import CuttingProxy
from tests.stores.redis_server import Server
from tests.system.faults.shop import PROCESSES


Fault = Callable[[], Callable[[], None] | None]
"""Begins, and gives back what ends it if that is not itself."""


class Ground(Protocol):
    """
    Where the workers of each process find a store, for how long they wait for it, and what can befall it, by name.
    """

    @property
    def timeout(self) -> float: ...

    def place(self, process: int) -> str: ...

    def faults(self, chosen: random.Random, pids: Callable[[], Sequence[int]]) -> dict[str, Fault]: ...

    def open(self) -> Store:
        """
        The store itself, once nothing befalls it any more.
        """

    def close(self) -> None: ...


class SqliteGround:
    """
    A file in *folder*. Workers wait for it for less time than it may be locked.
    """

    timeout: Final = 0.4

    def __init__(self, folder: Path) -> None:
        self._path = folder / "state.db"

    def place(self, process: int) -> str:
        return str(self._path)

    def faults(self, chosen: random.Random, pids: Callable[[], Sequence[int]]) -> dict[str, Fault]:
        def locked() -> Callable[[], None] | None:
            database = sqlite3.connect(self._path, isolation_level=None, timeout=2, check_same_thread=False)
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.Error:
                # A worker holds it that is paused.
                database.close()
                return None
            return database.close

        def full() -> Callable[[], None]:
            # No file may grow beyond what the log has now, as on a full disk; what workers tell goes into a pipe.
            log = self._path.with_name("state.db-wal")
            limit(max(log.stat().st_size if log.exists() else 0, 4096))
            return lambda: limit(resource.RLIM_INFINITY)

        def limit(size: int) -> None:
            for pid in pids():
                with suppress(ProcessLookupError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        return {"locked": locked, "full disk": full}

    def open(self) -> Store:
        return SqliteStore(self._path)

    def close(self) -> None:
        pass


class RedisGround:
    """
    A server in *folder* that has each commit on its disk before it answers, and a proxy before it for each process.
    """

    timeout: Final = 1.0

    def __init__(self, folder: Path) -> None:
        self._server = Server("--appendonly", "yes", "--appendfsync", "always", folder=folder)
        self._proxies = [CuttingProxy(self._server.port, f"{folder} {number}") for number in range(PROCESSES)]
        self._down = False
        """The server is killed or paused right now."""

    def place(self, process: int) -> str:
        return f"redis://127.0.0.1:{self._proxies[process].port}/0"

    def faults(self, chosen: random.Random, pids: Callable[[], Sequence[int]]) -> dict[str, Fault]:
        def switched(name: str, now: float, then: float) -> Fault:
            def begin() -> Callable[[], None]:
                proxy = chosen.choice(self._proxies)
                setattr(proxy, name, now)
                return lambda: setattr(proxy, name, then)

            return begin

        return {
            "connections cut": lambda: chosen.choice(self._proxies).cut_all(),
            "requests and answers lost": switched("lossy", 0.2, 0.0),
            "network paused": switched("paused", True, False),
            "answers held back": switched("unanswered", True, False),
            "server killed": lambda: self._without(self._server.kill, self._server.start),
            "server paused": lambda: self._without(self._server.pause, self._server.resume),
        }

    def _without(self, begin: Callable[[], None], end: Callable[[], None]) -> Callable[[], None] | None:
        if self._down:
            return None
        begin()
        self._down = True

        def over() -> None:
            end()
            self._down = False

        return over

    def open(self) -> Store:
        return RedisStore(self._server.url, timeout=10)

    def close(self) -> None:
        for proxy in self._proxies:
            proxy.close()
        self._server.remove()
