"""
A sandbox and what lies outside of it: folders with canaries, listening sockets, and programs that try to get out.

The programs are harmless wherever they run: they touch canaries in folders for temporary files only, and are bounded.
"""

import json
import os
import socket
import sys
import tempfile

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.run import Ended, run_started
from guardrails.processes.sandbox import Backend, Confinement
from guardrails.processes.sandbox.choose import tried
from guardrails.processes.sandbox.folders import interpreter


collect_ignore_glob = [] if sys.platform.startswith("linux") else ["test_*.py"]
PREFACE = """
import ctypes, errno, json, os, signal, socket, sys, time
told = json.loads(sys.argv[1])
def failed(deed, *given):
    try:
        deed(*given)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return None
def say(value):
    print(json.dumps(value), flush=True)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was tried before is not asked in the user's own folder for caches.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=["bwrap", "landlock"])
def backend(request: pytest.FixtureRequest) -> Backend:
    try:
        return tried(request.param)
    except SandboxUnavailable as error:
        pytest.skip(f"{request.param}: {error}")


@dataclass
class Place:
    """
    A workspace in a home, a folder outside of both, and what was seen there.
    """

    home: Path
    workspace: Path
    outside: Path
    backend: Backend
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, code: str, timeout: float = 60, told: Any = None, **settings: Any) -> Ended:
        """
        Run the Python *code* in the sandbox, with *told* as its `told`.
        """
        arguments = [interpreter(), "-I", "-S", "-c", PREFACE + code, json.dumps(told)]
        return self.start(arguments, timeout, **settings)

    def start(self, arguments: list[str], timeout: float = 60, **settings: Any) -> Ended:
        return run_started(
            self.backend.started(self.confinement(**settings), arguments), timeout=timeout, limit=1 << 20
        )

    def said(self, code: str, told: Any = None, **settings: Any) -> Any:
        """
        What *code* said of itself; it has to end well.
        """
        ended = self.run(code, told=told, **settings)
        assert ended.exit_code == 0, ended
        return json.loads(ended.output)

    def confinement(self, **settings: Any) -> Confinement:
        return Confinement(workspace=str(self.workspace), environment={"PATH": os.defpath}, **settings)


@pytest.fixture
def place(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    # Not in pytest's own folder, that another user could not enter.
    with tempfile.TemporaryDirectory(prefix="sandbox-test-") as folder:
        base = Path(folder)
        made = Place(base / "home", base / "home" / "project", base / "outside", backend)
        made.workspace.mkdir(parents=True)
        made.outside.mkdir()
        (made.home / ".ssh").mkdir()
        (made.home / ".ssh" / "id").write_text("planted")
        (made.outside / "secret").write_text("planted")
        monkeypatch.setenv("HOME", str(made.home))
        yield made


@dataclass
class Listening:
    tcp: int
    udp: int
    path: str
    abstract: str
    sockets: list[socket.socket]

    def reached(self) -> list[str]:
        found = []
        for each in self.sockets:
            try:
                each.recv(1) if each.type == socket.SOCK_DGRAM else each.accept()[0].close()
                found.append(f"{each.family.name} {each.type.name}")
            except BlockingIOError:
                pass
        return found


@pytest.fixture
def listening(place: Place) -> Iterator[Listening]:
    with ExitStack() as stack:
        path, abstract = str(place.outside / "socket"), f"sandbox-test-{place.outside.parent.name}"

        def made(family: int, kind: int, address: Any) -> socket.socket:
            one = stack.enter_context(socket.socket(family, kind))
            one.bind(address)
            one.settimeout(0)
            if kind == socket.SOCK_STREAM:
                one.listen(4)
            return one

        tcp = made(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        udp = made(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        unix = made(socket.AF_UNIX, socket.SOCK_STREAM, path)
        datagrams = made(socket.AF_UNIX, socket.SOCK_DGRAM, path + "-datagrams")
        hidden = made(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract)
        ports = tcp.getsockname()[1], udp.getsockname()[1]
        yield Listening(*ports, path, abstract, [tcp, udp, unix, datagrams, hidden])


Free = Callable[[], bool]


@pytest.fixture
def free(place: Place) -> Free:
    """
    Whether nobody holds the lock `lock` in the workspace, so that whoever took it has ended.
    """
    import fcntl  # not on Windows

    def is_free() -> bool:
        with (place.workspace / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    return is_free
