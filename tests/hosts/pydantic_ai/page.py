"""
The page about pydantic-ai: its program runs, and its figures are what is measured.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from pydantic_ai import Agent
from pydantic_ai.exceptions import UsageLimitExceeded

from tests.hosts.behaviours.base import searching, stuck

from .driver import Scripted, looped, run


PAGE = (Path(__file__).parents[3] / "docs" / "hosts" / "pydantic-ai.md").read_text(encoding="utf-8")


class Page:
    """
    As a reader would use it.
    """

    def test_the_program_prints_what_the_page_shows(self, capsys: pytest.CaptureFixture[str]) -> None:
        _, program, printed = re.findall(r"```(?:python)?\n(.*?)```", PAGE, re.DOTALL)
        scripted, ran = Scripted(stuck), list[str]()
        program = program.replace('"openai:gpt-5-mini"', "model").replace(
            'return "nothing', 'ran.append(query); return "nothing'
        )
        names: dict[str, Any] = {"model": scripted.model, "ran": ran}
        with looped():
            exec(compile(program, "pydantic-ai.md", "exec"), names)  # noqa: S102
        assert capsys.readouterr().out == printed
        assert f"| behind `default` | {len(ran)} times | {len(scripted.asked)} |" in PAGE

    def test_the_bare_host_does_as_the_page_says(self) -> None:
        scripted, ran = Scripted(stuck), list[str]()
        with pytest.raises(UsageLimitExceeded):
            run(Agent(scripted.model, tools=[searching(ran)]))
        assert f"| bare | {len(ran)} times | {len(scripted.asked)} | `UsageLimitExceeded`" in PAGE
