"""
`guardrails run` from end to end: the library's own tools (D10), those of a file and of MCP servers (D5), what is seen while it goes, how it
ends, what commands reach in a sandbox, and what stays behind (nothing).
"""

import json
import os
import pty
import shlex
import signal
import socket
import sys
import urllib.request  # noqa: F401  before a test says that this is macOS, whose part of it is not here

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails import Policy
from guardrails.agent.conversations import Conversations
from guardrails.cli import app
from guardrails.core.values.types import STATUSES
from guardrails.processes.sandbox import bubblewrap
from guardrails.sinks import read
from guardrails.testing.scripted_openai import (
    Body,
    Calls,
    Fail,
    Reply,
    ScriptedCall,
    ScriptedOpenAI,
    Text,
    call,
    obeying,
)
from tests.children import PATIENCE_S, ROOT, child, ran, until
from tests.openai_api import problems
from tests.tables import table


ALL = "edit_file exec_shell list_directory memory_read memory_write message read_file spawn web_fetch web_search write_file"
GUARDRAILS = [sys.executable, "-m", "guardrails"]
Run = Callable[..., Result]


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name, text in {"NO_PROXY": "127.0.0.1", "COLUMNS": "200", "OPENAI_API_KEY": "sk-planted"}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def command(server: ScriptedOpenAI, workspace: Path, *more: object) -> list[str]:
    """
    The words that run a task in the workspace by the model of a server.
    """
    given = ["--base-url", server.base_url, "--model", "gpt-5-mini", "--workspace", workspace]
    return [*map(str, ["run", *given, *more])]


@pytest.fixture
def run(workspace: Path) -> Run:
    """
    Runs a task; without a server as the arguments say.
    """

    def made(server: ScriptedOpenAI | None, *arguments: object) -> Result:
        words = ["run", *map(str, arguments)] if server is None else command(server, workspace, *arguments)
        return CliRunner().invoke(app, words)

    return made


@pytest.fixture
def own(workspace: Path) -> list[object]:
    """
    The options for a tool of one's own.
    """
    code = "def read(page: int) -> str:\n    return f'page {page}'\n"
    return ["--no-builtins", "--tools", file(workspace.parent, "tools.py", code)]


@pytest.fixture
def observing(workspace: Path) -> list[object]:
    return ["--policy", policy(workspace.parent, "mode: observe")]


def results(body: Body) -> list[dict[str, Any]]:
    """
    What the tools gave back in a request: envelopes, also of a success that came as the tool wrote it.
    """
    found = []
    for content in [message["content"] for message in body["messages"] if message["role"] == "tool"]:
        own: Any = content.partition("\n\n[guardrails] ")[0]
        with suppress(ValueError):
            own = json.loads(own)
        enveloped = isinstance(own, dict) and own.get("status") in STATUSES
        found.append(own if enveloped else {"status": "success", "result": own})
    return found


def steps(*calls: ScriptedCall, answer: str = "done", **others: list[ScriptedCall]) -> Any:
    """
    A model that makes *calls*, one turn each; a conversation about another task is played by *others*.
    """

    def model(body: Body, n: int) -> Reply:
        played = others.get(body["messages"][1]["content"], calls)
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        return Text(answer) if turn >= len(played) or body.get("tool_choice") == "none" else Calls(played[turn])

    return model


def file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def policy(folder: Path, more: str, extends: str = "default") -> Path:
    return file(folder, "policy.yaml", f"version: 1\nextends: {extends}\n{more}\n")


def test_d10_d6_an_agent_works_with_its_tools_and_none_leaves_the_workspace(workspace: Path, run: Run) -> None:
    secret = file(workspace.parent, "secret.txt", "secret")
    works = [
        call("write_file", {"path": "notes/a.txt", "content": "one\ntwo\n"}),
        call("edit_file", {"path": "notes/a.txt", "old_text": "two", "new_text": "three"}),
        call("exec_shell", {"command": "pwd; wc -l < notes/a.txt; echo key=$OPENAI_API_KEY"}),
        call("read_file", {"path": "notes/a.txt"}),
        call("memory_write", {"key": "a", "text": "two lines"}),
        call("memory_read", {"query": "a"}),
        call("message", {"text": "half done"}),
    ]
    leaves = [
        call("exec_shell", {"command": "rm -rf /"}),
        call("read_file", {"path": "../secret.txt"}),
        call("write_file", {"path": str(secret), "content": ""}),
        call("web_fetch", {"url": "http://127.0.0.1:9/"}),
    ]
    with ScriptedOpenAI(steps(*works, *leaves, answer="two lines")) as server:
        shown = run(server, "count", "--json", "--search", "https://search.example/?q={query}", "--sandbox", "none")
        assert shown.exit_code == 0, shown.output
    told = results(server.requests[-1])
    assert [said["status"] for said in told] == ["success"] * 7 + ["denied"] * 3 + ["error"], told
    assert [said["code"].split(".")[0] for said in told[7:10]] == ["shell", "workspace", "workspace"]
    assert f"{workspace}\\n2\\nkey=\\n" in json.dumps(told[2])
    assert ("one\\nthree" in json.dumps(told[3]), "two lines" in json.dumps(told[5])) == (True, True)
    assert ("   message: half done" in shown.stderr, json.loads(shown.stdout)["answer"]) == (True, "two lines")
    assert (workspace.parent / "state" / "guardrails").stat().st_mode & 0o077 == 0
    assert " ".join(tool["function"]["name"] for tool in server.requests[0]["tools"]) == ALL
    assert secret.read_text() == "secret"


def test_d10_a_sub_agent_works_within_the_budget_of_its_parent(workspace: Path, run: Run) -> None:
    script = steps(
        call("spawn", {"task": "sub"}),
        call("list_directory", {"path": "."}),
        sub=[call("write_file", {"path": "a.txt", "content": "a"}), call("read_file", {"path": "a.txt"})],
    )
    with ScriptedOpenAI(script) as server:
        shown = run(server, "delegate", "--policy", policy(workspace.parent, "budget: {max_calls: 3}"), "--json")
    assert shown.exit_code == 1, shown.output
    end = json.loads(shown.stdout)
    assert (end["code"], end["progress"]["calls_used"]) == ("budget.max_calls", 3)
    assert (workspace / "a.txt").read_text() == "a"
    said = [str(said.get("result")) for body in server.requests for said in results(body)]
    assert any("'answer': 'done', 'calls_used'" in one for one in said)
    assert "-> write_file" in shown.stderr


def test_what_needs_a_person_waits_where_there_is_no_terminal_and_another_process_answers(
    workspace: Path, run: Run
) -> None:
    kept = workspace.parent / "state.db"
    asking = policy(workspace.parent, "approve: {tools: [write_file], reason: it stays}", "agent")
    written = call("write_file", {"path": "a.txt", "content": "x"})
    with ScriptedOpenAI(steps(written, written, written)) as server:
        shown = run(server, "write", "--policy", asking, "--conversation", kept)
        assert shown.exit_code == 0, shown.output
        assert [said["code"] for said in results(server.requests[-1])] == ["approve.pending"] * 3
    assert "nobody can be asked here" in shown.stderr
    assert not (workspace / "a.txt").exists()
    with Conversations(kept) as conversations:
        (found,) = conversations.listed()
        session = Policy.load(asking).session(found.id, store=conversations.store)
        session.approve(session.pending()[0])
    with ScriptedOpenAI(steps(*[written] * 5)) as server:
        run(server, "go on", "--resume", found.id, "--conversation", kept)
        told = results(server.requests[-1])
        assert told[-1]["status"] == "success", told
    assert (workspace / "a.txt").read_text() == "x"


# Tools of a person's own file


def test_what_a_tool_prints_is_not_on_stdout_and_one_that_would_end_the_process_has_failed(
    workspace: Path, run: Run
) -> None:
    code = "import asyncio, sys\nprint('loaded')\ndef read() -> str:\n    print('reading')\n    sys.exit(0)\n"
    code += "async def later() -> str:\n    raise asyncio.CancelledError\n"
    own = ["--no-builtins", "--tools", file(workspace.parent, "talks.py", code)]
    with ScriptedOpenAI([Calls(call("read", {}, id="c1"), call("later", {}, id="c2")), Text("It failed.")]) as server:
        shown = run(server, "-q", "read", *own)
    assert (shown.stdout, shown.exit_code) == ("It failed.\n", 0)
    assert ("loaded" in shown.stderr, "reading" in shown.stderr) == (True, True)
    assert [one["status"] for one in results(server.requests[-1])] == ["error", "error"]


# Tools of MCP servers

SERVER = str(ROOT / "tests/mcp/server.py")


def test_d5_the_tools_of_servers_are_used_and_one_that_is_not_there_is_noted(workspace: Path, run: Run) -> None:
    pytest.importorskip("mcp")
    commands = {"good": sys.executable, "gone": "no-such-command"}
    entries = {name: {"command": command, "args": [SERVER]} for name, command in commands.items()}
    servers = file(workspace.parent, "servers.json", json.dumps({"mcpServers": entries}))
    script: list[Reply] = [
        Calls(call("good__add", {"a": 1, "b": 2})),
        Calls(call("good__search", {"query": "fail"})),
        Text("three"),
        Calls(call("good__add", {"a": 3, "b": 4})),
        Text("seven"),
    ]
    with ScriptedOpenAI(script) as server:
        shown = run(server, "add", "--mcp", servers, "--no-builtins", "--json")
        assert shown.exit_code == 0, shown.output
        assert "   note: the MCP server `gone` cannot be used: " in shown.stderr
        # A resumed one connects to them again.
        again = run(None, "once more", "--resume", json.loads(shown.stdout)["id"])
        assert (again.exit_code, again.stdout) == (0, "seven\n"), again.output
    assert problems(server.requests) == []
    assert {tool["function"]["name"] for tool in server.requests[0]["tools"]} >= {"good__add", "good__search"}
    said = [json.loads(m["content"]) for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    assert (said[0], said[1]["status"], said[2]) == ({"sum": 3}, "error", {"sum": 7})


# Conversations of one user that share a budget


def test_the_conversations_of_a_user_share_a_budget_that_can_be_raised(
    workspace: Path, run: Run, own: list[object]
) -> None:
    new = ["--policy", policy(workspace.parent, "scopes: {user: {budget: {max_calls: 3}}}"), *own]
    looks = [call("read", {"page": n}) for n in range(2)]
    with ScriptedOpenAI(steps(*looks)) as server:
        ends = [run(server, user, *new, "--scope", f"user={user}") for user in ("me", "me", "you")]
        assert [each.exit_code for each in ends] == [0, 1, 0], ends[1].output
        assert "user.max_calls=AMOUNT" in ends[1].stderr
        name = ends[1].stderr.partition("--resume ")[2].split()[0]
        again = run(server, "--resume", name, "--extend", "user.max_calls=5")
        assert again.exit_code == 0, again.output
        assert "limits raised: user.max_calls by 5" in again.stderr


# What is seen, and how it ends


def test_at_a_terminal_text_is_shown_as_it_comes_and_once(workspace: Path, own: list[object]) -> None:
    script: list[Reply] = [Calls(call("read", {"page": 1}), text="I look first."), Text("It says x.\nThat is all.")]
    ours, theirs = pty.openpty()
    with ScriptedOpenAI(script) as server:
        given = command(server, workspace, "task", *own)
        with child(*GUARDRAILS, *given, stdout=theirs, stderr=theirs, stdin=DEVNULL) as process:
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
    limit = policy(workspace.parent, "budget: {max_calls: 1}")
    pages: list[Reply] = [Calls(call("read", {"page": n}, id=f"c{n}")) for n in range(3)]
    with ScriptedOpenAI(obeying(pages, "So far.")) as server:
        limited = run(server, "--json", "--policy", limit, "read", *own)
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


def commands(*texts: str) -> list[Reply]:
    return [*(Calls(call("exec_shell", {"command": text})) for text in texts), Text("done")]


@pytest.mark.parametrize(
    ("sandbox", "number"), [*product(["none", "auto"], [signal.SIGINT, signal.SIGTERM]), ("auto", signal.SIGKILL)]
)
def test_an_interrupted_run_leaves_no_process(
    request: pytest.FixtureRequest, workspace: Path, observing: list[object], sandbox: str, number: signal.Signals
) -> None:
    if sandbox == "auto":
        request.getfixturevalue("works")
    mark, away = f"600.{os.getpid()}{number}", "setsid" if sandbox == "auto" else ""
    with ScriptedOpenAI(commands(f"{away} sleep {mark} & touch running; sleep {mark}")) as server:
        given = command(server, workspace, "task", *observing, "--sandbox", sandbox)
        with child(*GUARDRAILS, *given, stdout=DEVNULL, stderr=PIPE) as process:
            until(lambda: (workspace / "running").exists() or process.poll() is not None)
            process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == (-9 if number == signal.SIGKILL else 130), said
    until(lambda: ran("pgrep", "-f", f"sleep {mark}").returncode == 1)


def test_a_command_reads_no_key_writes_nothing_outside_and_reaches_nobody_unless_it_is_let(
    works: None, workspace: Path, run: Run, observing: list[object]
) -> None:
    key = file(workspace.parent, "key", "sk-planted")
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
    whole, read_, written, *connects = map(str, results(server.requests[-1]))
    assert ("work\\nwhole\\n" in whole, "sk-planted" in read_) == (True, False)
    assert ("tried" in written, key.read_text()) == (True, "sk-planted")
    assert ["connected\\n" in one for one in connects] == [False, True, False]
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
    refused, written, by_hand = results(server.requests[-1])
    assert (refused["status"], refused["code"], refused["retryable"]) == ("denied", "sandbox.unavailable", False)
    assert not (workspace / "made").exists()
    assert (written["status"], "sandbox" in by_hand["result"]) == ("success", False)
    assert by_hand["result"]["output"] == "by hand\n"
