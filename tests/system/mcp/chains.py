"""
The ways from a client to the server of the conformance suite, direct and through our proxy, and what `python -m tests.system.mcp` has
installed. A test asks for a part of that by name, and is skipped with the reason if it is not there.
"""

import contextlib
import os
import shutil
import socket
import sys

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.children import child, free_port, until
from tests.mcp.process import ENVIRONMENT, tap


SERVER = (sys.executable, "-m", "tests.system.mcp.conformance_server")
STDIO = (*SERVER, "stdio")
HOME = os.environ.get("GUARDRAILS_MCP_HOME", "")


def program(name: str) -> str:
    """
    The program of a package of Python.
    """
    if not HOME:
        pytest.skip("python -m tests.system.mcp installs what this needs")
    file = Path(HOME, "bin", name)
    if not file.is_file():
        pytest.skip(f"{name} is not installed")
    return str(file)


def node() -> str:
    """
    A `node` that is new enough: that of the wheel, else that of the PATH.
    """
    found = Path(HOME, "bin", "node")
    return str(found) if found.is_file() else shutil.which("node") or program("node")


def script(package: str) -> tuple[str, str]:
    """
    The command of an MCP package of npm.
    """
    file = Path(HOME, "node", "node_modules", "@modelcontextprotocol", package, "dist", "index.js")
    return node(), str(file) if file.is_file() else program(package)


@contextlib.contextmanager
def listening(*command: str, port: int, log: Path) -> Iterator[str]:
    """
    The URL of a *command* that listens on a *port*; fails with its log if it does not.
    """

    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    around = {**os.environ, **ENVIRONMENT}
    with log.open("wb") as out, child(*command, env=around, stdin=-3, stdout=out, stderr=out) as process:
        until(listens)
        yield f"http://127.0.0.1:{port}/mcp"


@contextlib.contextmanager
def bridged(*command: str, folder: Path) -> Iterator[str]:
    """
    The URL of a stdio *command* behind a bridge that speaks HTTP.
    """
    port = free_port()
    front = (sys.executable, "-m", "tests.system.mcp.bridge", str(port))
    with listening(*front, *command, port=port, log=folder / "bridge.log") as url:
        yield url


@contextlib.contextmanager
def reached(name: str, folder: Path) -> Iterator[tuple[str, ...] | str]:
    """
    The command, or the URL, by which a client reaches the server: itself, or through our proxy in one of its forms.
    """
    given = {"policy": "default", "store": folder / "s.db", "records": folder / "records.jsonl"}
    if name in ("direct", "stdio"):
        yield STDIO if name == "direct" else tap(*STDIO, **given)
        return
    port, ours = free_port(), free_port()
    with listening(*SERVER, "http", str(port), port=port, log=folder / "server.log") as url:
        if name == "listen":
            with listening(*tap(listen=ours, url=url, **given), port=ours, log=folder / "tap.log") as front:
                yield front
        else:
            yield url if name == "http" else tap(url=url, **given)
