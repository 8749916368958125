"""
The page for operators: its programs and its commands run, and print what it shows.

That old files go on, and newer ones are refused, is in `tests/golden`.
"""

import re
import shlex

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails import Budget, Policy, SqliteStore
from guardrails.cli import app
from guardrails.cli.store import SHOWN
from guardrails.core.packing import VERSION
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call


PAGE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


def blocks(heading: str, language: str) -> list[str]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found, heading
    return found


@pytest.mark.system
def test_a_loop_whose_calls_are_stopped_ends_in_an_answer_of_the_model(tmp_path: Path) -> None:
    openai = pytest.importorskip("openai")
    from guardrails.integrations.openai import run

    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\n")
    policy = Policy.load(path, reload=0)

    def look(page: int) -> str:
        """Look at a page."""
        path.write_text("version: 1\nstop: the key leaked\n")
        return f"page {page}"

    script: list[Any] = [Calls(call("look", {"page": 1})), Text("Page 1 is all I have.")]
    with ScriptedOpenAI(script) as server, openai.OpenAI(base_url=server.base_url, api_key="none") as client:
        result = run(client, policy.session("s"), model="m", messages="Go", tools=[look])
    assert result.answer == "Page 1 is all I have."
    assert server.requests[-1]["tool_choice"] == "none"


def test_the_commands_that_look_at_a_store_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore("state.db") as store:
        Policy([Budget(max_calls=2)]).session("trip-42", store=store).call("search", {}, lambda *_: 1)
    heading = "How is a store looked at by hand?"
    commands = [line for text in blocks(heading, "sh") for line in text.splitlines()]
    assert len(commands) == 5
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
    assert not list(SqliteStore("state.db").entries())


@pytest.mark.system
def test_the_program_that_charges_a_response_runs_with_the_openai_client(monkeypatch: pytest.MonkeyPatch) -> None:
    openai = pytest.importorskip("openai")
    (program,) = blocks("Where do prices come from?", "python")
    with (
        ScriptedOpenAI(lambda request, n: Text("In Kyoto.")) as server,
        openai.OpenAI(base_url=server.base_url, api_key="none") as client,
    ):
        monkeypatch.setattr(openai, "OpenAI", lambda: client)
        names: dict[str, Any] = {}
        exec(compile(program, "operate.md", "exec"), names)
    assert names["priced"].model


def test_what_it_says_of_versions_is_so() -> None:
    assert f"the first byte of its block, {VERSION}" in WORDS
    assert f"{SHOWN} at most unless `--limit`" in WORDS
