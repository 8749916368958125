"""
A server of PostgreSQL for tests: on a free port of this machine, in a folder of its own, ended by its number.
"""

import atexit
import os
import shutil
import signal
import subprocess
import time

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

from tests.stores.redis_server import free_port


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return newest[-1].parent if newest else None


PROGRAMS: Final = _programs() if find_spec("psycopg") else None
ABSENT: Final = "no programs of PostgreSQL here, or no package psycopg"
needed: Final = pytest.mark.skipif(PROGRAMS is None, reason=ABSENT)


class Postgres:
    """
    A server, started here; by root as the user `postgres` or `nobody`, since it refuses to run as root.
    """

    def __init__(self) -> None:
        assert PROGRAMS is not None
        self.port = free_port()
        self.folder = Path(mkdtemp(prefix="guardrails-postgres-"))
        self._user: dict[str, Any] = {}
        if hasattr(os, "getuid") and os.getuid() == 0:
            import pwd

            names = {one.pw_name for one in pwd.getpwall()}
            self._user = {"user": "postgres" if "postgres" in names else "nobody"}
            shutil.chown(self.folder, self._user["user"])
        self._program: subprocess.Popen[Any] | None = None
        self._owner = os.getpid()
        atexit.register(self.remove)
        command: list[Any] = [PROGRAMS / "initdb", "-D", self.folder / "data", "-U", "test", "-A", "trust", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self._user)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://test@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        assert PROGRAMS is not None
        settings = ("-c", f"port={self.port}", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        command: list[Any] = [PROGRAMS / "postgres", "-D", self.folder / "data", *settings]
        with (self.folder / "log").open("ab") as log:
            self._program = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._user)
        until = time.monotonic() + 60
        while not self._answers():
            assert self._program is not None
            assert self._program.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """
        End the server at once, as a crash does: the next start recovers from its log. A fork of the tests ends nothing.
        """
        if self._program is not None and os.getpid() == self._owner:
            self._program.send_signal(how)
            self._program.wait()
            self._program = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        if os.getpid() == self._owner:
            self.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, text: str, *values: Any) -> Any:
        """
        The answer to a statement of somebody else.
        """
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(text, values)
            return done.fetchall() if done.description else None


@cache
def shared() -> Postgres:
    """
    A server that tests with tables of their own share: skips the test if there is none.
    """
    if PROGRAMS is None:
        pytest.skip(ABSENT)
    return Postgres()


def in_postgres(**settings: Any) -> Any:
    """
    An empty store in the shared server.
    """
    from guardrails.stores.postgres import PostgresStore

    return PostgresStore(shared().url, table=f"t{os.urandom(6).hex()}", **{"timeout": 20.0, **settings})
