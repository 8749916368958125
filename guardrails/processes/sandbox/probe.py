"""
A trial run: whether a sandbox keeps here what it promises.
"""

import json
import os
import shutil
import socket
import tempfile

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.run import Ended, run_started

from .blocked import why_not
from .confinement import Backend, Confinement
from .folders import interpreter


TIMEOUT_S: Final = 20.0
_SECRET: Final = "planted"  # noqa: S105
_TRIAL: Final = """
import json, os, socket, sys
told = json.loads(sys.argv[1])
out = {}
def tried(name, deed):
    try:
        deed()
        out[name] = True
    except OSError:
        out[name] = False
def write(path):
    with open(path, "w") as file:
        file.write("written")
def read(path):
    with open(path) as file:
        file.read()
def connect(family, kind, address):
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)
        made.send(b"x")
tried("inside", lambda: write("inside"))
for n, folder in enumerate(told["outside"]):
    tried(f"read {n}", lambda: read(folder + "/secret"))
    tried(f"write {n}", lambda: write(folder + "/written"))
    tried(f"change {n}", lambda: os.rename(folder + "/secret", folder + "/renamed"))
    tried(f"unix socket {n}", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, folder + "/socket"))
tried("tcp", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", told["tcp"])))
tried("udp", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", told["udp"])))
tried("abstract socket", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + told["abstract"]))
out["environment"] = bool(set(os.environ) - set(told["names"]))
print("TRIAL " + json.dumps(out))
"""


@dataclass(slots=True)
class _Canaries:
    """
    The things that a program outside of the sandbox could read, change and connect to.
    """

    folders: list[str] = field(default_factory=list)
    listening: list[socket.socket] = field(default_factory=list)
    tcp: int = 0
    udp: int = 0
    abstract: str = ""

    def touched(self) -> list[str]:
        """
        Returns the things outside that were reached, a sentence each.
        """
        whole = ["secret", "socket"]
        found = ["a folder outside was changed" for folder in self.folders if sorted(os.listdir(folder)) != whole]
        for each in self.listening:
            with suppress(BlockingIOError):
                each.recv(1) if each.type == socket.SOCK_DGRAM else each.accept()[0].close()
                found.append("a socket outside was reached")
        return found


def probe(backend: Backend, folders: tuple[str, ...]) -> None:
    """
    Run a true command in *backend*, and one that tries to get out, with canaries in *folders* and the folder for
    temporary files.

    Raises SandboxUnavailable with what blocked it, or with what the sandbox let through.
    """
    with tempfile.TemporaryDirectory(prefix="guardrails-trial-") as workspace, _planted(folders) as canaries:
        os.chmod(workspace, 0o700)
        confinement = Confinement(
            workspace=workspace, environment={"PATH": f"{os.environ.get('PATH', '')}:{os.defpath}"}
        )
        ended = _run(backend, confinement, ["true"])
        if ended.exit_code != 0:
            raise SandboxUnavailable(why_not(backend.name, ended.output))
        told = {
            "outside": canaries.folders,
            "tcp": canaries.tcp,
            "udp": canaries.udp,
            "abstract": canaries.abstract,
            "names": ["PATH", "HOME", "TMPDIR", "PWD", "LC_CTYPE", "GUARDRAILS_COMMAND", "TAR_OPTIONS"],
        }
        ended = _run(backend, confinement, [interpreter(), "-I", "-S", "-c", _TRIAL, json.dumps(told)])
        found = [*_let_through(ended), *canaries.touched()]
        if not (Path(workspace) / "inside").exists():
            found.append("its workspace could not be written to")
        if found:
            raise SandboxUnavailable(f"in a trial run {'; '.join(dict.fromkeys(found))}")


def _run(backend: Backend, confinement: Confinement, program: list[str]) -> Ended:
    try:
        return run_started(backend.started(confinement, program), timeout=TIMEOUT_S, limit=65_536)
    except OSError as error:
        raise SandboxUnavailable(f"it could not be started: {error.strerror}") from error


def _let_through(ended: Ended) -> list[str]:
    """
    Returns the acts that the trial could do, and should not have.
    """
    for line in ended.output.splitlines():
        if line.startswith("TRIAL "):
            out: dict[str, Any] = json.loads(line.removeprefix("TRIAL "))
            del out["udp"]  # a network of its own takes what it sends, and nobody gets it: only our own socket can tell
            inside = out.pop("inside", False)
            found = [
                f"`{name.rstrip(' 0123456789')}` of what lies outside was possible"
                for name, done in out.items()
                if done
            ]
            return found if inside else [*found, "its workspace could not be written to"]
    last = ended.output.strip()[-200:]
    return [f"the program that tries it did not end well ({last})"]


@contextmanager
def _planted(folders: tuple[str, ...]) -> Iterator[_Canaries]:
    made = _Canaries()
    with ExitStack() as stack:
        for folder in dict.fromkeys((tempfile.gettempdir(), *folders)):
            with suppress(OSError):
                canary = tempfile.mkdtemp(prefix="guardrails-trial-", dir=folder)
                stack.callback(shutil.rmtree, canary, ignore_errors=True)
                (Path(canary) / "secret").write_text(_SECRET)
                made.listening.append(_listening(stack, socket.AF_UNIX, f"{canary}/socket"))
                made.folders.append(canary)
        if not made.folders:
            raise SandboxUnavailable("no canary could be planted in the folder for temporary files")
        made.abstract = f"guardrails-trial-{os.path.basename(made.folders[0])}"
        made.listening.append(_listening(stack, socket.AF_UNIX, f"\0{made.abstract}"))
        tcp = _listening(stack, socket.AF_INET, ("127.0.0.1", 0))
        udp = _listening(stack, socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        made.tcp, made.udp = tcp.getsockname()[1], udp.getsockname()[1]
        made.listening += [tcp, udp]
        yield made


def _listening(stack: ExitStack, family: int, address: Any, kind: int = socket.SOCK_STREAM) -> socket.socket:
    made = stack.enter_context(socket.socket(family, kind))
    made.bind(address)
    made.settimeout(0)
    if kind == socket.SOCK_STREAM:
        made.listen(4)
    return made
