"""
The page about pydantic-ai: its program runs, and its figures are what is measured.
"""

from typing import Any

import pytest

from tests.hosts.behaviours.base import stuck
from tests.hosts.page import programs

from .driver import Scripted, looped


class Page:
    """
    As a reader would use it.
    """

    def test_the_program_prints_what_the_page_shows(self, capsys: pytest.CaptureFixture[str]) -> None:
        [(program, printed)] = programs("pydantic-ai")
        scripted, ran = Scripted(stuck), list[str]()
        program = program.replace('"openai:gpt-5-mini"', "model").replace(
            'return "nothing', 'ran.append(query); return "nothing'
        )
        names: dict[str, Any] = {"model": scripted.model, "ran": ran}
        with looped():
            exec(compile(program, "pydantic-ai.md", "exec"), names)
        assert capsys.readouterr().out == printed
        assert (len(ran), len(scripted.asked)) == (2, 7)
