"""
The pages that are followed step by step: what they say to save is saved, what they say to run is run, and prints what they show.
"""

import json
import os
import re
import shlex
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails import Budget, Policy, SqliteStore
from guardrails.agent.conversations import Conversations
from guardrails.cli import app
from guardrails.testing.scripted_openai import ScriptedOpenAI, Text
from tests.docs.pages import DOCS, ROOT, blocks
from tests.tables import table


BLOCK = re.compile(r"(.*?)^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""What stands before it, its language, its text."""
SAVED = re.compile(r"[Ss]ave this as\s+`([^`]+)`[^`]*\Z")


def ran(words: list[str], folder: Path) -> str:
    """
    What a command prints in *folder*, without what depends on the machine; raises if it fails.
    """
    program, *rest = words
    command = [sys.executable, *rest] if program == "python" else [sys.executable, "-m", program, *rest]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), "COLUMNS": "80"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=own, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = re.sub(r'"seconds_left":\d+', '"seconds_left":604800', done.stdout)
    return re.sub(r"\d+ passed in [\d.]+s", "passed", text)


@pytest.mark.system
@pytest.mark.parametrize("name", ["tutorial", "extend"])
def test_a_page_that_is_followed_literally_does_what_it_says(name: str, tmp_path: Path) -> None:
    followed = 0
    for before, language, text in BLOCK.findall((DOCS / f"{name}.md").read_text()):
        saved = SAVED.search(before)
        if saved is not None:
            target = tmp_path / saved[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif language == "console":
            asked = [line for line in text.splitlines(keepends=True) if line.startswith("$ ")]
            assert "".join(line + ran(line[2:].split(), tmp_path) for line in asked) == text
            followed += 1
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith(("guardrails ", "python ")):
                    ran(line.split(), tmp_path)
                    followed += 1
    assert followed


@pytest.mark.system
def test_the_page_about_mcp_starts_its_server_and_its_agent(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    settings, agent, printed, server, *_ = (block.text for block in blocks(DOCS / "mcp.md"))
    (tmp_path / "hotels.py").write_text(server)
    settings = settings.replace('"python"', repr(sys.executable)).replace("https://example.com", "http://127.0.0.1:9")
    (tmp_path / "agent.toml").write_text(settings)
    assert ran(["python", "-c", agent], tmp_path) == printed


def test_the_example_of_a_replay_prints_what_the_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (lines,), (shown,) = (blocks(DOCS / "replay.md", kind) for kind in ("json", "console"))
    Path("calls.jsonl").write_text(lines.text)
    command, _, output = shown.text.partition("\n")
    assert CliRunner(env={"COLUMNS": "100"}).invoke(app, command.split()[2:]).stdout.startswith(output)
    decisions = [json.loads(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    assert [line["decision"] for line in decisions] == ["allow", "deny", "deny"]


def test_the_commands_that_look_at_a_store_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore("state.db") as store:
        Policy([Budget(max_calls=2)]).session("trip-42", store=store).call("search", {}, lambda *_: 1)
    own = [one for one in blocks(DOCS / "operate.md", "sh") if one.section == "How is a store looked at by hand?"]
    commands = "".join(one.text for one in own).splitlines()
    assert [CliRunner().invoke(app, shlex.split(command)[1:]).exit_code for command in commands] == [0] * 5
    assert not list(SqliteStore("state.db").entries())


@pytest.mark.system
@table("name, expected", [("run", "names['result'].answer"), ("operate", "names['priced'].model and 'In Kyoto.'")])
def test_the_program_of_a_page_runs_with_the_openai_client(
    name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai = pytest.importorskip("openai")
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    with Conversations("agent.db") as kept:
        kept.start("trip-42", messages=[{"role": "user", "content": "a hotel"}])
    server = ScriptedOpenAI(lambda request, n: Text("In Kyoto."))
    with server, openai.OpenAI(base_url=server.base_url, api_key="none") as client, monkeypatch.context() as patched:
        patched.setattr(openai, "OpenAI", lambda: client)
        (program,) = [one.text for one in blocks(DOCS / f"{name}.md", "python") if "OpenAI()" in one.text]
        names: dict[str, Any] = {}
        exec(compile(program, name, "exec"), names)
    assert eval(expected, {"names": names}) == "In Kyoto."


@pytest.mark.system
def test_the_blocks_of_the_loop_run_in_order_and_show_what_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    names: dict[str, Any] = {}
    printed = []
    for block in blocks(DOCS / "agent-loop.md", "python"):
        exec(compile(block.text, "agent-loop.md", "exec"), names)
        printed.append(capsys.readouterr().out)
    registry, chat, responses, limit, cut, failed = printed
    assert registry.startswith("['book', 'fs__read', 'search_hotels']\n")
    assert "Did you mean `search_hotels`?" in registry
    assert chat.endswith("One in each, h_1. answered 2 1 5\n")
    assert responses.startswith("h_1 in Kyoto.\n['message', 'function_call', 'function_call', 'function_call_output',")
    assert limit.startswith("I stopped after 2 turns. forced budget.max_turns none\n")
    assert '"limit_message": "Tool call limit reached (2). Stopping tool loop."' in limit
    assert cut == "Nothing anywhere. 4\nI was stopped. 12\n"
    assert failed.startswith("the reply is no JSON; check the base URL (HTTP 200 from `http://127.0.0.1:")
