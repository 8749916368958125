"""
The page about crewai: its program runs, and its figures are what is measured.
"""

import pytest

from tests.hosts.behaviours.base import stuck
from tests.hosts.page import programs

from .driver import Model


class Page:
    """
    As a reader would use it.
    """

    def test_the_program_prints_what_the_page_shows(self, capsys: pytest.CaptureFixture[str]) -> None:
        [(program, printed)] = programs("crewai")
        model, ran = Model(stuck), list[str]()
        program = program.replace('"openai/gpt-5-mini"', "model").replace(
            'return "nothing', 'ran.append(query); return "nothing'
        )
        exec(compile(program, "crewai.md", "exec"), {"model": model, "ran": ran})
        # What the host prints of its own stands in frames.
        lines = [line for line in capsys.readouterr().out.splitlines() if line and line[0] not in "╭│╰"]
        assert lines == printed.splitlines()
        assert (len(ran), len(model.asked)) == (2, 7)
