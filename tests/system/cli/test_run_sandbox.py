"""
`guardrails run` in a sandbox: what commands reach, what is refused where there is none, what stays behind (nothing).
"""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request  # noqa: F401  before a test says that this is macOS, whose part of it is not here

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.sandbox import bubblewrap
from guardrails.sinks import read
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call
from tests.children import child


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


@pytest.fixture
def works() -> None:
    try:
        bubblewrap()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


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
def test_an_interrupted_run_leaves_no_process(
    request: pytest.FixtureRequest, workspace: Path, sandbox: str, number: signal.Signals
) -> None:
    if sandbox == "none" and number == signal.SIGKILL:
        pytest.skip("nobody is left to end a command that no sandbox holds")
    if sandbox == "auto":
        request.getfixturevalue("works")
    mark, away = f"600.{os.getpid()}{number}", "setsid" if sandbox == "auto" else ""
    with ScriptedOpenAI(commands(f"{away} sleep {mark} & touch running; sleep {mark}")) as server:
        given = options(server, workspace, "--sandbox", sandbox)
        command = [sys.executable, "-m", "guardrails", "run", "task", *map(str, given)]
        with child(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            until(lambda: (workspace / "running").exists() or process.poll() is not None)
            process.send_signal(number)
            _, said = process.communicate(timeout=30)
        assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGKILL: -9}[number], said
    until(lambda: not marked(mark), 5)


def test_a_command_reads_no_key_writes_nothing_outside_and_reaches_nobody(works: None, workspace: Path) -> None:
    sandbox = "bwrap"
    outside = Path.home() / f".guardrails-planted-{os.getpid()}"
    outside.write_text("sk-planted-in-the-home")
    (workspace.parent / "key").write_text("sk-planted-beside")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{listening.getsockname()[1]} && echo connected"
        script = commands(
            "echo work > made && cat made && touch $HOME/own $TMPDIR/own && echo whole",
            f"cat {shlex.quote(str(outside))} {shlex.quote(str(workspace.parent / 'key'))}; env; cat /proc/*/environ",
            f"echo x > {shlex.quote(str(outside))}; echo x > {shlex.quote(str(workspace.parent / 'written'))}; echo tried",
            connect,
        )
        try:
            with ScriptedOpenAI(script) as server:
                shown = run("task", *options(server, workspace, "--sandbox", sandbox))
                assert shown.exit_code == 0, shown.output
                assert f"commands in {sandbox}" in shown.stderr
            assert outside.read_text() == "sk-planted-in-the-home"
        finally:
            outside.unlink()
        with pytest.raises(TimeoutError):
            listening.accept()
    whole, read_, written, connected = told(server)
    assert whole["output"] == "work\nwhole\n"
    assert "sk-planted" not in json.dumps(read_)
    assert "tried" in written["output"]
    assert connected["status"] == "error"
    assert "connected" not in connected["result"]["output"]
    assert not (workspace.parent / "written").exists()
    assert (workspace / "made").read_text() == "work\n"
    records = read(workspace.parent / "state" / "guardrails" / "conversations.jsonl")
    assert [record["sandbox"] for record in records if record["event"] == "settle"] == [sandbox] * 4


def test_a_command_reaches_the_network_if_it_is_let_and_a_resumed_run_keeps_what_was_said(
    works: None, workspace: Path
) -> None:
    sandbox = "bwrap"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{listening.getsockname()[1]} && echo connected"
        with ScriptedOpenAI([*commands(connect), *commands(connect), *commands(connect)]) as server:
            shown = run("task", *options(server, workspace, "--sandbox", sandbox, "--network", "--json"))
            assert shown.exit_code == 0, shown.output
            name = json.loads(shown.stdout)["id"]
            assert run("again", "--resume", name).exit_code == 0
            assert run("and again", "--resume", name, "--no-network").exit_code == 0
    said = told(server)
    assert [one.get("status", "success") for one in said] == ["success", "success", "error"]


def test_where_no_sandbox_works_commands_are_refused_and_the_rest_goes_on(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    script: list[Reply] = [
        Calls(call("exec_shell", {"command": "echo x > made"})),
        Calls(call("write_file", {"path": "written", "content": "x"})),
        Text("done"),
        *commands("echo by hand"),
    ]
    with ScriptedOpenAI(script) as server:
        shown = run("task", *options(server, workspace, "--json"))
        assert shown.exit_code == 0, shown.output
        assert "note: exec_shell is refused, sandbox.unavailable: " in shown.stderr
        again = run("again", "--resume", json.loads(shown.stdout)["id"], "--sandbox", "none")
        assert "commands in no sandbox" in again.stderr
    refused, written, by_hand = told(server)
    assert (refused["status"], refused["code"]) == ("denied", "sandbox.unavailable")
    assert refused["message"] == "No command can be run here."
    assert refused["retryable"] is False
    assert "sandbox" not in refused
    assert not (workspace / "made").exists()
    assert "status" not in written
    assert by_hand["output"] == "by hand\n"
    assert "sandbox" not in by_hand
