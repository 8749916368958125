"""
The ways from a client to the server of the conformance suite: direct, and through our proxy.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time

from collections.abc import Iterator
from pathlib import Path

from tests.mcp.proxy.lines import ENVIRONMENT, tap


SERVER = (sys.executable, "-m", "tests.system.mcp.proxy.conformance_server")
STDIO = (*SERVER, "stdio")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextlib.contextmanager
def listening(*command: str, port: int, log: Path) -> Iterator[str]:
    """
    The URL of a *command* that listens on a *port*; raises RuntimeError with its log if it does not in two minutes.
    """
    with log.open("wb") as out:
        env = {**os.environ, **ENVIRONMENT}
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            end = time.monotonic() + 120
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > end:
                        raise RuntimeError(f"{command} does not listen: {log.read_text()}") from None
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


@contextlib.contextmanager
def http_server(folder: Path) -> Iterator[str]:
    port = free_port()
    with listening(*SERVER, "http", str(port), port=port, log=folder / "server.log") as url:
        yield url


@contextlib.contextmanager
def bridged(*command: str, folder: Path) -> Iterator[str]:
    """
    A stdio *command* behind a bridge that speaks HTTP.
    """
    port = free_port()
    front = (sys.executable, "-m", "tests.system.mcp.proxy.bridge", str(port))
    with listening(*front, *command, port=port, log=folder / "bridge.log") as url:
        yield url


@contextlib.contextmanager
def http_tap(folder: Path, **options: object) -> Iterator[str]:
    """
    Our proxy listening before an HTTP server.
    """
    port = free_port()
    with http_server(folder) as url:
        command = tap(listen=port, url=url, **options)[:-1]
        with listening(*command, port=port, log=folder / "tap.log") as front:
            yield front
