"""
Processes that a test starts, and that do not outlive it.
"""

import os
import socket
import subprocess
import time

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final


ROOT: Final = Path(__file__).parents[1]
PATIENCE_S: Final = 150.0
"""Longest wait for what is to happen. Only a failing test waits so long: a machine may be slow, or busy with others."""


def until(happened: Callable[[], object]) -> None:
    """
    Wait for what is to happen; fails if it does not.
    """
    over = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < over, f"it has not happened within {PATIENCE_S:g} s"
        time.sleep(0.01)


@contextmanager
def child(*command: object, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """
    Start *command*, whose pipes speak text. Kills it at the end of the block if it still runs: a test that fails leaves
    nothing behind that another one could trip over.
    """
    with subprocess.Popen([*map(str, command)], text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def ran(*command: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    """
    The *command* once it has ended, with what it printed; it finds this library wherever it runs.
    """
    around: dict[str, Any] = {"capture_output": True, "text": True, "timeout": PATIENCE_S}
    around["env"] = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([*map(str, command)], check=options.pop("check", False), **around | options)


def is_gone(pid: object) -> bool:
    """
    Whether a process has ended, though nobody may have asked for its exit code yet.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as given:
        return int(given.getsockname()[1])
