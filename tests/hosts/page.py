"""
The page of the hosts, by its sections.
"""

import re

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call


PAGE = (Path(__file__).parents[2] / "docs/hosts.md").read_text(encoding="utf-8")


def programs(heading: str) -> list[tuple[str, str]]:
    """
    The programs of the section *heading*, each with what it prints.
    """
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", section, re.DOTALL)
    assert found, heading
    return found


def ran(
    heading: str, capsys: pytest.CaptureFixture[str], replaced: Mapping[str, str] | None = None, **names: Any
) -> None:
    """
    Runs the programs of the section *heading* with *names* in scope and parts of their text *replaced*; each prints what the page says.
    """
    for text, printed in programs(heading):
        program = text
        for part, own in (replaced or {}).items():
            program = program.replace(part, own)
        exec(compile(program, "hosts.md", "exec"), names)
        # What a host prints of its own stands in frames.
        lines = [line for line in capsys.readouterr().out.splitlines() if line and line[0] not in "╭│╰"]
        assert lines == printed.splitlines()


@contextmanager
def openai_model(monkeypatch: pytest.MonkeyPatch, answer: str) -> Iterator[None]:
    """
    A model behind the client of OpenAI that makes the same call until its tools are off, and then says *answer*. The API would
    have taken each request, and each lists the tools.
    """
    from tests.openai_api import problems

    def model(body: Any, n: int) -> Any:
        off = body.get("tool_choice") == "none"
        return Text(answer) if off else Calls(call("search", {"query": "x"}))

    with ScriptedOpenAI(model) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "-")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        yield
        assert problems(server.requests) == []
        assert all(body["tools"] for body in server.requests)
        assert "tool_choice" not in server.requests[0] or server.requests[0]["tool_choice"] == "auto"
