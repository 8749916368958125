"""
The page about pydantic-ai: its program runs, and its figures are what is measured.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from tests.hosts.behaviours.base import stuck

from .driver import Scripted, looped


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
            exec(compile(program, "pydantic-ai.md", "exec"), names)
        assert capsys.readouterr().out == printed
        assert f"| behind `default` | {len(ran)} times | {len(scripted.asked)} |" in PAGE
