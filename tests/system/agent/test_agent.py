"""
An agent with the library's own tools (D10), those of a file and of MCP servers (D5), from end to end.
"""

import json
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.agent.conversations import Conversations
from guardrails.core.values.types import STATUSES
from guardrails.testing.scripted_openai import Body, Calls, Reply, ScriptedCall, ScriptedOpenAI, Text, call
from tests.openai_api import problems

from .conftest import Run


pytestmark = pytest.mark.system
ALL = "edit_file exec_shell list_directory memory_read memory_write message read_file spawn web_fetch web_search write_file"


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

SERVER = Path(__file__).parents[2] / "mcp" / "server.py"


def test_d5_the_tools_of_servers_are_used_and_one_that_is_not_there_is_noted(workspace: Path, run: Run) -> None:
    pytest.importorskip("mcp")
    commands = {"good": sys.executable, "gone": "no-such-command"}
    entries = {name: {"command": command, "args": [str(SERVER)]} for name, command in commands.items()}
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

LOOK = "def look(n: int) -> str:\n    return f'found {n}'\n"


def test_the_conversations_of_a_user_share_a_budget_that_can_be_raised(workspace: Path, run: Run) -> None:
    scoped = policy(workspace.parent, "scopes: {user: {budget: {max_calls: 3}}}")
    new = ["--policy", scoped, "--no-builtins", "--tools", file(workspace.parent, "tools.py", LOOK)]
    looks = [call("look", {"n": n}) for n in range(2)]
    with ScriptedOpenAI(steps(*looks)) as server:
        ends = [run(server, user, *new, "--scope", f"user={user}") for user in ("me", "me", "you")]
        assert [each.exit_code for each in ends] == [0, 1, 0], ends[1].output
        assert "user.max_calls=AMOUNT" in ends[1].stderr
        name = ends[1].stderr.partition("--resume ")[2].split()[0]
        again = run(server, "--resume", name, "--extend", "user.max_calls=5")
        assert again.exit_code == 0, again.output
        assert "limits raised: user.max_calls by 5" in again.stderr
