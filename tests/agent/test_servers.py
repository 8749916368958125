"""
An agent with the tools of MCP servers (D5, D10).
"""

import json
import sys

from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call
from tests.openai_api import problems


pytest.importorskip("mcp")
SERVER = Path(__file__).parents[1] / "mcp" / "server_that_misbehaves.py"


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def configured(folder: Path, **commands: str) -> Path:
    file = folder / "servers.json"
    servers = {name: {"command": command, "args": [str(SERVER)]} for name, command in commands.items()}
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


@pytest.mark.system
def test_the_tools_of_servers_are_used_and_one_that_is_not_there_is_noted(tmp_path: Path) -> None:
    file = configured(tmp_path, good=sys.executable, gone="no-such-command")
    script: list[Reply] = [
        Calls(call("good__add", {"a": 1, "b": 2})),
        Calls(call("good__search", {"query": "fail"})),
        Text("three"),
        Calls(call("good__add", {"a": 3, "b": 4})),
        Text("seven"),
    ]
    with ScriptedOpenAI(script) as server:
        shown = run("add", "--base-url", server.base_url, "--model", "m", "--mcp", file, "--no-builtins", "--json")
        assert shown.exit_code == 0, shown.output
        assert "   note: the MCP server `gone` cannot be used: " in shown.stderr
        assert "   ok" in shown.stderr
        # A resumed one connects to them again.
        again = run("once more", "--resume", json.loads(shown.stdout)["id"])
        assert (again.exit_code, again.stdout) == (0, "seven\n"), again.output
    assert problems(server.requests) == []
    names = [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert {"good__add", "good__search"} <= set(names)
    told = [json.loads(m["content"]) for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    assert (told[0], told[1]["status"], told[2]) == (3, "error", 7)


@pytest.mark.parametrize(("text", "why"), [(None, "cannot read"), ("{", "servers.json"), ('{"mcpServers": 1}', "")])
def test_a_file_of_servers_that_cannot_be_used_is_refused_before_anything_starts(
    tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "servers.json"
    if text is not None:
        file.write_text(text)
    shown = run("add", "--base-url", "http://127.0.0.1:9", "--model", "m", "--mcp", file)
    assert shown.exit_code == 2
    assert why in shown.stderr
    assert "Traceback" not in shown.output
    assert "conversation " not in shown.stderr
