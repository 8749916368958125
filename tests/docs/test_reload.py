"""
docs/reload.md: its program as it stands, and a loop that is stopped in its middle.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call


PAGE = (Path(__file__).parents[2] / "docs" / "reload.md").read_text()


def test_the_program_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [(program, printed)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "reload.md", "exec"), {})
    assert capsys.readouterr().out == printed


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
