"""
`guardrails run` as it goes and as it ends: text as it comes, one last event, what commands reach in a sandbox, and what stays
behind (nothing).
"""

import json
import os
import pty
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request  # noqa: F401  before a test says that this is macOS, whose part of it is not here

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guardrails.processes.sandbox import bubblewrap
from guardrails.sinks import read
from guardrails.testing.scripted_openai import Calls, Fail, Reply, ScriptedOpenAI, Text, call, obeying
from tests.children import PATIENCE_S, child, ran, until
from tests.tables import table

from .conftest import Run


pytestmark = pytest.mark.system
TOOLS = "def read(page: int) -> str:\n    return f'page {page}'\n"


@pytest.fixture
def own(workspace: Path) -> list[object]:
    """
    The options for tools of one's own.
    """
    (workspace.parent / "tools.py").write_text(TOOLS)
    return ["--no-builtins", "--tools", workspace.parent / "tools.py"]


def command(server: ScriptedOpenAI, workspace: Path, *more: object) -> list[str]:
    given = ["run", "task", "--base-url", server.base_url, "--model", "gpt-5-mini", "--workspace", workspace, *more]
    return [sys.executable, "-m", "guardrails", *map(str, given)]


def test_at_a_terminal_text_is_shown_as_it_comes_and_once(workspace: Path, own: list[object]) -> None:
    script: list[Reply] = [Calls(call("read", {"page": 1}), text="I look first."), Text("It says x.\nThat is all.")]
    ours, theirs = pty.openpty()
    with ScriptedOpenAI(script) as server:
        given = command(server, workspace, *own)
        with child(*given, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
            os.close(theirs)
            seen = b""
            with suppress(OSError):
                while piece := os.read(ours, 65_536):
                    seen += piece
            process.wait(PATIENCE_S)
            os.close(ours)
    parts = [b"I look first.", b"-> read", b"It says x.", b"That is all.", b"end ended=answered"]
    assert [seen.count(part) for part in parts] == [1] * 5
    assert parts == sorted(parts, key=seen.index)
    assert server.requests[0]["stream"] is True


# How it ends


def test_a_limit_and_an_error_end_with_one_object_and_its_code(workspace: Path, run: Run, own: list[object]) -> None:
    policy = workspace.parent / "policy.yaml"
    policy.write_text("version: 1\nextends: default\nbudget: {max_calls: 1}\n")
    pages: list[Reply] = [Calls(call("read", {"page": n}, id=f"c{n}")) for n in range(3)]
    with ScriptedOpenAI(obeying(pages, "So far.")) as server:
        limited = run(server, "--json", "--policy", policy, "read", *own)
    with ScriptedOpenAI([Fail(400, message="no such model")]) as server:
        failed = run(server, "--json", "--no-stream", "read", *own)
    assert "stream" not in server.requests[0]
    shown = (limited, failed, run(None, "--json", "read"))
    ends = [json.loads(one.stdout) for one in shown]
    assert [(end["ended"], end["code"], end["error"] is None) for end in ends] == [
        ("forced", "budget.max_calls", True),
        ("failed", "endpoint.failed", False),
        ("failed", "agent_error", False),
    ]
    assert [end["exit_code"] for end in ends] == [one.exit_code for one in shown] == [1, 2, 2]


@table("missing, more", [("openai", []), ("mcp", ["--mcp", "servers.toml"])])
def test_without_its_extra_it_says_so_and_touches_no_file(tmp_path: Path, missing: str, more: list[str]) -> None:
    (tmp_path / "servers.toml").write_text('[servers.a]\ncommand = "true"\n')
    (tmp_path / "tools.py").write_text("from pathlib import Path\nPath('touched').touch()\ndef f() -> int: ...\n")
    given = ["run", "task", "--model", "m", "--base-url", "http://127.0.0.1:9", "--tools", "tools.py", *more]
    code = f"import sys\nsys.modules[{missing!r}] = None\nfrom guardrails.cli import app\napp({given!r})"
    before = sorted(tmp_path.rglob("*"))
    done = ran(sys.executable, "-B", "-c", code, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f'pip install "toolcall-guardrails[{missing}]"\nend ended=failed code=missing_extra' in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


# What commands reach


@pytest.fixture
def observing(workspace: Path) -> list[object]:
    (workspace.parent / "observing.yaml").write_text("version: 1\nextends: default\nmode: observe\n")
    return ["--policy", workspace.parent / "observing.yaml"]


def commands(*texts: str) -> list[Reply]:
    return [*(Calls(call("exec_shell", {"command": text})) for text in texts), Text("done")]


def told(server: ScriptedOpenAI) -> list[dict[str, Any]]:
    """
    The envelopes of all calls.
    """
    return [json.loads(m["content"]) for m in server.requests[-1]["messages"] if m["role"] == "tool"]


@pytest.mark.parametrize("sandbox", ["none", "auto"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(
    request: pytest.FixtureRequest, workspace: Path, observing: list[object], sandbox: str, number: signal.Signals
) -> None:
    if sandbox == "none" and number == signal.SIGKILL:
        pytest.skip("nobody is left to end a command that no sandbox holds")
    if sandbox == "auto":
        request.getfixturevalue("works")
    mark, away = f"600.{os.getpid()}{number}", "setsid" if sandbox == "auto" else ""
    with ScriptedOpenAI(commands(f"{away} sleep {mark} & touch running; sleep {mark}")) as server:
        given = command(server, workspace, *observing, "--sandbox", sandbox)
        with child(*given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            until(lambda: (workspace / "running").exists() or process.poll() is not None)
            process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == (-9 if number == signal.SIGKILL else 130), said
    until(lambda: ran("pgrep", "-f", f"sleep {mark}").returncode == 1)


def test_a_command_reads_no_key_writes_nothing_outside_and_reaches_nobody_unless_it_is_let(
    works: None, workspace: Path, run: Run, observing: list[object]
) -> None:
    key = workspace.parent / "key"
    key.write_text("sk-planted")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{listening.getsockname()[1]} && echo connected"
        script = commands(
            "echo work > made && cat made && touch $HOME/own $TMPDIR/own && echo whole",
            f"cat {shlex.quote(str(key))}; env; cat /proc/*/environ",
            f"echo x > {shlex.quote(str(key))}; echo tried",
            connect,
        )
        with ScriptedOpenAI([*script, *commands(connect), *commands(connect)]) as server:
            shown = run(server, "task", *observing, "--sandbox", "bwrap", "--json")
            assert (shown.exit_code, "commands in bwrap" in shown.stderr) == (0, True), shown.output
            # A resumed one keeps what was said at first.
            for more in (["--network"], []):
                assert run(None, "again", "--resume", json.loads(shown.stdout)["id"], *more).exit_code == 0
    whole, read_, written, *connects = told(server)
    assert (whole["output"], "sk-planted" in json.dumps(read_)) == ("work\nwhole\n", False)
    assert ("tried" in written["output"], key.read_text()) == (True, "sk-planted")
    assert ["connected" in str(one.get("output")) for one in connects] == [False, True, False]
    records = read(workspace.parent / "state" / "guardrails" / "conversations.jsonl")
    assert {record["sandbox"] for record in records if record["event"] == "settle"} == {"bwrap"}


def test_where_no_sandbox_works_commands_are_refused_and_the_rest_goes_on(
    workspace: Path, run: Run, observing: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    bubblewrap.cache_clear()
    script: list[Reply] = [
        Calls(call("exec_shell", {"command": "echo x > made"})),
        Calls(call("write_file", {"path": "written", "content": "x"})),
        Text("done"),
        *commands("echo by hand"),
    ]
    with ScriptedOpenAI(script) as server:
        shown = run(server, "task", *observing, "--json")
        assert shown.exit_code == 0, shown.output
        assert "note: exec_shell is refused, sandbox.unavailable: " in shown.stderr
        again = run(None, "again", "--resume", json.loads(shown.stdout)["id"], "--sandbox", "none")
        assert "commands in no sandbox" in again.stderr
    refused, written, by_hand = told(server)
    assert (refused["status"], refused["code"], refused["retryable"]) == ("denied", "sandbox.unavailable", False)
    assert not (workspace / "made").exists()
    assert "status" not in written
    assert (by_hand["output"], "sandbox" in by_hand) == ("by hand\n", False)
