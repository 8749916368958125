"""
An agent with the library's own tools (D10), from end to end against the scripted server.
"""

import json
import os
import signal
import subprocess
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails import Conversations, Policy
from guardrails.cli import app
from guardrails.core.values.types import STATUSES
from guardrails.testing.scripted_openai import Body, Calls, Reply, ScriptedCall, ScriptedOpenAI, Text, call
from tests.children import child


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def run(server: ScriptedOpenAI, workspace: Path, *arguments: object) -> Result:
    given = ["run", *arguments, "--base-url", server.base_url, "--workspace", workspace]
    return CliRunner().invoke(app, [*map(str, given)])


def results(body: Body) -> list[dict[str, Any]]:
    """
    What the tools gave back in a request.
    """
    return [told(message["content"]) for message in body["messages"] if message["role"] == "tool"]


def told(content: str) -> dict[str, Any]:
    """
    An envelope, also of a success that came as the tool wrote it.
    """
    own: Any = content.partition("\n\n[guardrails] ")[0]
    with suppress(ValueError):
        own = json.loads(own)
    return own if isinstance(own, dict) and own.get("status") in STATUSES else {"status": "success", "result": own}


def steps(*calls: ScriptedCall | list[ScriptedCall], answer: str = "done", **others: Any) -> Any:
    """
    A model that makes *calls*, one turn each; a conversation about another task is played by *others*.
    """

    def model(body: Body, n: int) -> Reply:
        task = body["messages"][1]["content"]
        played = others.get(task, calls)
        turn = sum(1 for message in body["messages"] if message["role"] == "assistant")
        if turn >= len(played) or body.get("tool_choice") == "none":
            return Text(answer if played is calls else f"{task} {answer}")
        made = played[turn]
        return Calls(*(made if isinstance(made, list) else [made]))

    return model


def test_d10_an_agent_works_with_files_a_shell_memory_and_messages(workspace: Path, tmp_path: Path) -> None:
    script = steps(
        call("list_directory", {"path": "."}),
        call("write_file", {"path": "notes/a.txt", "content": "one\ntwo\n"}),
        call("edit_file", {"path": "notes/a.txt", "old_text": "two", "new_text": "three"}),
        call("exec_shell", {"command": "wc -l < notes/a.txt; echo key=$OPENAI_API_KEY"}),
        call("read_file", {"path": "notes/a.txt"}),
        call("memory_write", {"key": "a", "text": "two lines"}),
        call("memory_read", {"query": "a"}),
        call("message", {"text": "half done"}),
        answer="two lines",
    )
    with ScriptedOpenAI(script) as server:
        search = "https://search.example/?q={query}"
        shown = run(
            server, workspace, "count", "--model", "gpt-5-mini", "--json", "--search", search, "--sandbox", "none"
        )
        assert shown.exit_code == 0, shown.output
    told = results(server.requests[-1])
    assert [said["status"] for said in told] == ["success"] * 8, told
    assert (workspace / "notes" / "a.txt").read_text() == "one\nthree\n"
    assert "2\nkey=\n" in json.dumps(told[3]).encode().decode("unicode_escape")
    assert "one\\nthree" in json.dumps(told[4])
    assert "two lines" in json.dumps(told[6])
    assert "   message: half done" in shown.stderr
    assert json.loads(shown.stdout)["answer"] == "two lines"
    assert (tmp_path / "state" / "guardrails").stat().st_mode & 0o077 == 0
    listed = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert listed == {
        "edit_file", "exec_shell", "list_directory", "memory_read", "memory_write", "message", "read_file", "spawn",
        "web_fetch", "web_search", "write_file",
    }  # fmt: skip


def test_no_tool_leaves_the_workspace_or_asks_a_private_address(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    script = steps(
        call("read_file", {"path": "../secret.txt"}),
        call("write_file", {"path": str(tmp_path / "secret.txt"), "content": ""}),
        call("web_fetch", {"url": "http://127.0.0.1:9/"}),
    )
    with ScriptedOpenAI(script) as server:
        shown = run(server, workspace, "look", "--model", "m")
    assert shown.exit_code == 0, shown.output
    assert all(said["status"] != "success" for said in results(server.requests[-1]))
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert "secret" not in json.dumps(server.requests[-1]["messages"][3:]).replace("secret.txt", "")


def test_d10_a_sub_agent_works_within_the_budget_of_its_parent(workspace: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nextends: default\nbudget: {max_calls: 3}\n")
    script = steps(
        call("spawn", {"task": "sub"}),
        call("list_directory", {"path": "."}),
        sub=[call("write_file", {"path": "a.txt", "content": "a"}), call("read_file", {"path": "a.txt"})],
    )
    with ScriptedOpenAI(script) as server:
        shown = run(server, workspace, "delegate", "--model", "m", "--policy", policy, "--json")
    assert shown.exit_code == 1, shown.output
    told = json.loads(shown.stdout)
    assert (told["code"], told["progress"]["calls_used"]) == ("budget.max_calls", 3)
    assert (workspace / "a.txt").read_text() == "a"
    spawned = next(
        said for body in server.requests for said in results(body) if "calls_used" in str(said.get("result"))
    )
    assert spawned["result"]["answer"] == "sub done"
    assert "-> write_file" in shown.stderr


def test_the_policys_workspace_is_the_agents_and_commands_are_read_before_they_run(workspace: Path) -> None:
    here = Path.cwd()
    script = steps(
        call("write_file", {"path": "a.txt", "content": "a"}),
        call("read_file", {"path": "../../etc/passwd"}),
        call("exec_shell", {"command": "rm -rf /"}),
        call("exec_shell", {"command": "pwd"}),
    )
    with ScriptedOpenAI(script) as server:
        shown = run(server, workspace, "look", "--model", "m", "--sandbox", "none")
    assert shown.exit_code == 0, shown.output
    told = results(server.requests[-1])
    assert [said["status"] for said in told] == ["success", "denied", "denied", "success"], told
    assert [said.get("code", "").split(".")[0] for said in told[1:3]] == ["workspace", "shell"]
    assert str(workspace) in json.dumps(told[3])
    assert Path.cwd() == here


def test_b4_an_agent_killed_while_its_sub_agent_works_is_resumed_with_the_budget_it_has_left(
    workspace: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nextends: default\nbudget: {max_calls: 10}\n")
    slow = f"echo $$ > {workspace}/shell; sleep 60; echo late > {workspace}/late"
    script = steps(call("spawn", {"task": "sub"}), sub=[call("exec_shell", {"command": slow})])
    with ScriptedOpenAI(script) as server:
        given = [
            "delegate",
            "--base-url",
            server.base_url,
            "--model",
            "m",
            "--policy",
            policy,
            "--workspace",
            workspace,
            # In one, what its command says of itself is no number of ours.
            "--sandbox",
            "none",
        ]
        command = [sys.executable, "-m", "guardrails", "run", *map(str, given)]
        with child(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as agent:
            shell = workspace / "shell"
            while not (shell.exists() and shell.read_text().strip()):
                with suppress(subprocess.TimeoutExpired):
                    agent.wait(0.01)
                    break
            agent.send_signal(signal.SIGKILL)
            # Nobody is left to stop its command.
            with suppress(ProcessLookupError):
                os.killpg(os.getpgid(int(shell.read_text())), signal.SIGKILL)
            agent.communicate()
        [kept] = json.loads(CliRunner().invoke(app, ["run", "--list", "--json"]).stdout)["conversations"]
        shown = CliRunner().invoke(app, ["run", "--resume", kept["id"], "--json"])
        assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert [(call["tool"], call["admitted"]) for call in told["interrupted"]] == [("spawn", True)]
    # The spawn and the call of the sub-agent; all else came back.
    assert told["progress"] == {**told["progress"], "calls_used": 2, "calls_left": 8}


def test_what_needs_a_person_waits_where_there_is_no_terminal_and_another_process_answers(
    workspace: Path, tmp_path: Path
) -> None:
    policy, kept = tmp_path / "asking.yaml", tmp_path / "state.db"
    policy.write_text("version: 1\nextends: agent\napprove: {tools: [write_file], reason: it stays}\n")
    written = call("write_file", {"path": "a.txt", "content": "x"})
    own = ["--model", "m", "--policy", policy, "--conversation", kept]
    with ScriptedOpenAI(steps(written, written, written)) as server:
        shown = run(server, workspace, "write", *own)
        assert shown.exit_code == 0, shown.output
        assert [said["code"] for said in results(server.requests[-1])] == ["approve.pending"] * 3
    assert "nobody can be asked here" in shown.stderr
    assert not (workspace / "a.txt").exists()
    with Conversations(kept) as conversations:
        (found,) = conversations.listed()
        session = Policy.load(policy).session(found.id, store=conversations.store)
        session.approve(session.pending()[0])
    with ScriptedOpenAI(steps(*[written] * 5)) as server:
        run(server, workspace, "go on", "--resume", found.id, "--conversation", kept)
        told = results(server.requests[-1])
        assert told[-1]["status"] == "success", told
    assert (workspace / "a.txt").read_text() == "x"
