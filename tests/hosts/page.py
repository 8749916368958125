"""
The page of the hosts: the programs of each, and a model for them.
"""

import re

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call
from tests.openai_api import problems


PAGE = (Path(__file__).parents[2] / "docs/hosts.md").read_text(encoding="utf-8")


def ran(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Runs the programs about *host*; each prints what the page says.
    """
    programs = re.findall(r"```python\n([^`]*)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    own = [each for each in programs if f"guardrails.integrations.{host} import" in each[0]]
    assert own, host
    for program, printed in own:
        exec(compile(program, "hosts.md", "exec"), {})
        # What a host prints of its own stands in frames.
        lines = [line for line in capsys.readouterr().out.splitlines() if line and line[0] not in "╭│╰"]
        assert lines == printed.splitlines()


@contextmanager
def openai_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """
    A model behind the client of OpenAI that makes the same call until its tools are off. The API would have taken each request,
    and tools that are off stay listed if they can.
    """

    def model(body: Any, n: int) -> Any:
        off = body.get("tool_choice") == "none" or not body.get("tools")
        return Text("I found nothing.") if off else Calls(call("search", {"query": "x"}))

    with ScriptedOpenAI(model) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "-")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        yield
        assert problems(server.requests) == []
        assert len(server.requests) == 7
        assert server.requests[0].get("tool_choice", "auto") == "auto"
