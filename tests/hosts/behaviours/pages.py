"""
The page of the hosts.
"""

import gc

import pytest

from tests.hosts import page

from .base import Behaviours


class Pages(Behaviours):
    """
    Its programs.
    """

    @pytest.mark.system
    @pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    def test_the_programs_of_the_page_print_what_it_says(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with self.host.page(monkeypatch):
            page.ran(self.host.name, capsys)
        # The program of a reader leaves its connection to the loop that ended.
        gc.collect()
