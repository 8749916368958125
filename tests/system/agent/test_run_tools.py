"""
`guardrails run` with tools of a person's own file that print, or end the process.
"""

import json

from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def run(server: ScriptedOpenAI, tools: Path, *more: str, said: str | None = None) -> Result:
    given = ["run", "--base-url", server.base_url, "--model", "gpt-5-mini", "--no-builtins", "--tools", str(tools)]
    return CliRunner().invoke(app, [*given, *more], input=said)


@pytest.mark.parametrize("how", ["--json", "-q"])
def test_what_tools_print_is_no_part_of_what_goes_to_stdout(tmp_path: Path, how: str) -> None:
    tools = tmp_path / "talks.py"
    tools.write_text("print('loaded')\ndef read(page: int) -> str:\n    print('reading')\n    return 'x'\n")
    with ScriptedOpenAI([Calls(call("read", {"page": 1}, id="c1")), Text("All read.")]) as server:
        shown = run(server, tools, how, "read")
    told = shown.stdout
    answer = told.strip() if how == "-q" else json.loads(told)["answer"]
    assert answer == "All read."
    assert "loaded" in shown.stderr
    assert "reading" in shown.stderr


@pytest.mark.parametrize("body", ["    sys.exit(0)\n", "    raise asyncio.CancelledError\n"])
def test_a_tool_that_would_end_the_process_has_failed_and_the_run_goes_on(tmp_path: Path, body: str) -> None:
    tools = tmp_path / "quits.py"
    tools.write_text(f"import asyncio, sys\ndef read(page: int) -> str:\n{body}async def later() -> str:\n{body}")
    calls = Calls(call("read", {"page": 1}, id="c1"), call("later", {}, id="c2"))
    with ScriptedOpenAI([calls, Text("It failed.")]) as server:
        shown = run(server, tools, "--json", "read")
    assert (shown.exit_code, json.loads(shown.stdout)["answer"]) == (0, "It failed.")
    results = [json.loads(one["content"]) for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    assert [one["status"] for one in results] == ["error", "error"]
