"""
A server of Redis for tests: on a free port of this machine, in a folder of its own, ended by its number.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import time

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest


PROGRAM: Final = (shutil.which("redis-server") or shutil.which("valkey-server")) if find_spec("redis") else None
ABSENT: Final = "no redis-server or valkey-server here, or no package redis"
needed: Final = pytest.mark.skipif(PROGRAM is None, reason=ABSENT)


class Server:
    """
    A server, started here with *settings* of its configuration, or by the file *config* a sentinel.
    """

    def __init__(self, *settings: str, port: int = 0, folder: Path | None = None, config: Path | None = None) -> None:
        self.port = port or free_port()
        self.folder = folder or Path(mkdtemp(prefix="guardrails-redis-"))
        self._settings = settings
        self._config = config
        self._program: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self.remove)
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        assert PROGRAM is not None
        own = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--daemonize", "no")
        with (self.folder / "log").open("ab") as log:
            command = [PROGRAM, *own, "--save", "", *self._settings]
            if self._config is not None:
                command = [PROGRAM, str(self._config), *own, "--sentinel"]
            self._program = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        until = time.monotonic() + 20
        while not self._answers():
            assert self._program.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return not connection.recv(100).startswith(b"-LOADING")
        except OSError:
            return False

    def kill(self) -> None:
        """
        kill -9. A fork of the tests ends nothing.
        """
        if self._program is not None and os.getpid() == self._owner:
            self._program.send_signal(signal.SIGCONT)
            self._program.kill()
            self._program.wait()
            self._program = None

    def pause(self) -> None:
        assert self._program is not None
        self._program.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._program is not None
        self._program.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        self.kill()
        self.start()

    def remove(self) -> None:
        if os.getpid() != self._owner:
            return
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, **settings: Any) -> Any:
        import redis

        return redis.Redis(host="127.0.0.1", port=self.port, **settings)

    def ask(self, *command: Any) -> Any:
        """
        The answer to a command of somebody else.
        """
        with self.client() as client:
            return client.execute_command(*command)


def free_port() -> int:
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        return int(given.getsockname()[1])


@contextmanager
def cluster(primaries: int) -> Iterator[list[Server]]:
    """
    Servers that have equal shares of the slots of one cluster.
    """
    slots, nodes = 16_384, []
    try:
        for n in range(primaries):
            # The nodes speak to each other by the port that is 10,000 higher.
            port = next(port for port in iter(free_port, 0) if port < 55_000)
            nodes.append(Server("--cluster-enabled", "yes", port=port))
            nodes[n].ask("CLUSTER", "ADDSLOTSRANGE", n * slots // primaries, (n + 1) * slots // primaries - 1)
            nodes[n].ask("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
        until = time.monotonic() + 60
        while not all(b"cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in nodes):
            assert time.monotonic() < until
            time.sleep(0.01)
        yield nodes
    finally:
        for node in nodes:
            node.remove()


@cache
def shared() -> Server:
    """
    A server that tests with names of their own share: skips the test if there is none.
    """
    if PROGRAM is None:
        pytest.skip(ABSENT)
    return Server()


def in_redis(**settings: Any) -> Any:
    """
    An empty store in the shared server.
    """
    from guardrails import RedisStore

    return RedisStore(shared().url, namespace=f"t{os.urandom(6).hex()}", **{"timeout": 20.0, **settings})
