"""
`guardrails run` in a sandbox: what commands reach, what is refused where there is none, what stays behind (nothing).
"""

import json
import os
import signal
import subprocess
import sys
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call


BACKENDS = ("bwrap", "landlock")
POLICY = "version: 1\nextends: default\nmode: observe\n"


@pytest.fixture(autouse=True)
def workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def run(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)], **options)


def options(server: ScriptedOpenAI, workspace: Path, *more: object) -> list[object]:
    policy = workspace.parent / "policy.yaml"
    return ["--base-url", server.base_url, "--model", "m", "--policy", policy, "--workspace", workspace, *more]


def commands(*texts: str) -> list[Reply]:
    return [*(Calls(call("exec_shell", {"command": text})) for text in texts), Text("done")]


def told(server: ScriptedOpenAI) -> list[dict[str, Any]]:
    """
    The envelopes of all calls.
    """
    return [json.loads(m["content"]) for m in server.requests[-1]["messages"] if m["role"] == "tool"]


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    over = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < over
        time.sleep(0.02)


def marked(mark: str) -> list[int]:
    """
    The processes whose command line holds *mark*.
    """
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if mark.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("sandbox", ["none", "auto"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(workspace: Path, sandbox: str, number: signal.Signals) -> None:
    if sandbox == "none" and number == signal.SIGKILL:
        pytest.skip("nobody is left to end a command that no sandbox holds")
    mark = f"600.{os.getpid()}{number}"
    with ScriptedOpenAI(commands(f"setsid sleep {mark} & touch running; sleep {mark}")) as server:
        given = options(server, workspace, "--sandbox", sandbox)
        command = [sys.executable, "-m", "guardrails", "run", "task", *map(str, given)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # noqa: S603
        until(lambda: (workspace / "running").exists() or process.poll() is not None)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number], said
    until(lambda: not marked(mark), 5)
