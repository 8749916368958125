"""
Hook processes and the resident ones that they start, all below one folder.
"""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final


ROOT: Final = Path(__file__).parents[2]
_LOCK: Final = re.compile(r"[0-9a-f]{32}\.lock")
VARIABLES: Final = ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")


def event(tool_use_id: str, command: str = "make", **said: Any) -> bytes:
    """
    What Claude Code tells before a call.
    """
    return json.dumps(
        {
            "session_id": "s",
            "cwd": "/",
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": tool_use_id,
            **said,
        }
    ).encode()


def policy(path: Path, most: int, *rest: str) -> Path:
    """
    A policy of *most* calls in the file *path*.
    """
    path.write_text("\n".join(["version: 1", f"budget: {{max_calls: {most}}}", *rest, ""]))
    return path


class Home:
    """
    A home folder in *folder*, and hook processes that live there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "run" / "guardrails"
        (folder / "run").mkdir()
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "PYTHONPATH": str(ROOT),
        }

    def start(self, data: bytes, *options: str | Path, **settings: Any) -> "subprocess.Popen[bytes]":
        """
        A hook process that has read *data*.
        """
        started = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "guardrails", "hook", *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            **settings,
        )
        assert started.stdin is not None
        started.stdin.write(data)
        started.stdin.close()
        started.stdin = None
        return started

    def hook(self, data: bytes, *options: str | Path, **settings: Any) -> Any:
        """
        The answer to *data*.
        """
        return answer(self.start(data, *options, **settings))

    def residents(self) -> list[int]:
        """
        The resident processes that live: each holds a lock, in which its number is.
        """
        return residents(self.run) if self.run.is_dir() else []


def residents(folder: Path) -> list[int]:
    """
    The resident processes whose sockets are in *folder* or below it.
    """
    found = []
    for path in folder.rglob("*.lock"):
        if _LOCK.fullmatch(path.name) is None:
            continue
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                said = _settled(path)
                if said.isdigit():
                    found.append(int(said))
    return found


def end_below(folder: Path) -> None:
    """
    End the resident processes whose sockets are in *folder* or below it: for whoever starts hooks in a test.
    """
    for process in residents(folder):
        os.kill(process, signal.SIGKILL)
        assert gone(process)


def _settled(path: Path) -> bytes:
    until = time.monotonic() + 10
    while (said := path.read_bytes()).startswith(b"starting") and time.monotonic() < until:
        time.sleep(0.01)
    return said


def answer(started: "subprocess.Popen[bytes]") -> Any:
    """
    What a hook process has written: one JSON object, and its code is 0.
    """
    written, errors = started.communicate(timeout=60)
    assert started.returncode == 0, errors
    assert written.count(b"\n") == 1
    return json.loads(written)


def denied(said: Any) -> bool:
    """
    Whether an answer refuses its call.
    """
    return bool(said) and said["hookSpecificOutput"]["permissionDecision"] == "deny"


def gone(process: int) -> bool:
    """
    Whether *process* has ended, waiting a while for it.
    """
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


@contextmanager
def living(folder: Path) -> Iterator[Home]:
    """
    A home in *folder*; its resident processes are ended at the end.
    """
    home = Home(folder)
    try:
        yield home
    finally:
        end_below(folder)
