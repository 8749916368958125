"""
Servers of Redis and PostgreSQL for tests: on a free port of this machine, in a folder of their own, ended by their number.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess

from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

from tests.children import free_port, until


def _programs() -> Path | None:
    found = shutil.which("initdb")
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return Path(found).resolve().parent if found else newest[-1].parent if newest else None


REDIS: Final = (shutil.which("redis-server") or shutil.which("valkey-server")) if find_spec("redis") else None
POSTGRES: Final = _programs() if find_spec("psycopg") else None
needed: Final = pytest.mark.skipif(REDIS is None, reason="no redis-server or valkey-server, or no package redis")


class Program:
    """
    A server that is started here, with *settings* of its own; the test is skipped if there is none. A fork of the tests ends nothing.
    """

    there: object
    lacks: str
    user: str | None = None
    end = signal.SIGKILL

    def __init__(self, *settings: str, port: int = 0) -> None:
        if not self.there:
            pytest.skip(self.lacks)
        self.settings, self.port, self._owner = settings, port or free_port(), os.getpid()
        self.folder = Path(mkdtemp(prefix="guardrails-server-"))
        self.prepare()
        atexit.register(self.remove)
        self.start()

    def prepare(self) -> None: ...

    def command(self) -> list[Any]:
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [*map(str, self.command())]
            self._program = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, user=self.user)
        until(self._is_up)

    def _is_up(self) -> bool:
        assert self._program.poll() is None, (self.folder / "log").read_text()
        return self.answers()

    def kill(self) -> None:
        """
        End the server as a crash does.
        """
        if os.getpid() == self._owner:
            for number in (signal.SIGCONT, self.end):
                self._program.send_signal(number)
            self._program.wait()

    def pause(self) -> None:
        self._program.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._program.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        if os.getpid() == self._owner:
            self.kill()
            shutil.rmtree(self.folder, ignore_errors=True)


class Server(Program):
    """
    A server of Redis.
    """

    there, lacks = REDIS, "no redis-server or valkey-server, or no package redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[Any]:
        own = ("--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--daemonize", "no", "--save", "")
        return [REDIS, *own, *self.settings]

    def answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return not connection.recv(100).startswith(b"-LOADING")
        return False

    def client(self, **settings: Any) -> Any:
        import redis

        return redis.Redis(host="127.0.0.1", port=self.port, **settings)

    def ask(self, *command: Any) -> Any:
        """
        The answer to a command of somebody else.
        """
        with self.client() as client:
            return client.execute_command(*command)


class Postgres(Program):
    """
    A server of PostgreSQL; by root as the user `postgres` or `nobody`, since it refuses to run as root.
    """

    there, lacks = POSTGRES, "no programs of PostgreSQL, or no package psycopg"
    # At once, as a crash: the next start recovers from its log.
    end = signal.SIGQUIT

    def prepare(self) -> None:
        if hasattr(os, "getuid") and os.getuid() == 0:
            import pwd

            self.user = "postgres" if "postgres" in {one.pw_name for one in pwd.getpwall()} else "nobody"
            shutil.chown(self.folder, self.user)
        made = [f"{POSTGRES}/initdb", "-D", f"{self.folder}/data", "-U", "test", "-A", "trust", "--no-sync"]
        subprocess.run(made, check=True, capture_output=True, cwd="/", user=self.user)

    @property
    def url(self) -> str:
        return f"postgresql://test@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[Any]:
        settings = ("-c", f"port={self.port}", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        return [f"{POSTGRES}/postgres", "-D", self.folder / "data", *settings]

    def answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):
            psycopg.connect(self.url).close()
            return True
        return False

    def ask(self, text: str, *values: Any) -> Any:
        """
        The answer to a statement of somebody else.
        """
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(text, values)
            return done.fetchall() if done.description else None


# Those that tests with names of their own share, and an empty store in each

shared, shared_postgres = cache(Server), cache(Postgres)


def in_redis(**settings: Any) -> Any:
    from guardrails.stores.redis import RedisStore

    return RedisStore(shared().url, namespace=f"t{os.urandom(6).hex()}", **{"timeout": 60.0, **settings})


def in_postgres(**settings: Any) -> Any:
    from guardrails.stores.postgres import PostgresStore

    return PostgresStore(shared_postgres().url, table=f"t{os.urandom(6).hex()}", **{"timeout": 60.0, **settings})
