"""
Hook processes, all below one folder.
"""

import json
import os
import subprocess
import sys

from pathlib import Path
from typing import Any, Final


ROOT: Final = Path(__file__).parents[2]


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
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": str(ROOT),
        }

    def start(self, data: bytes, *options: str | Path, **settings: Any) -> "subprocess.Popen[bytes]":
        """
        A hook process that has read *data*.
        """
        started = subprocess.Popen(
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
