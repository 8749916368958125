"""
The program `examples/langchain_agent.py`, with the real package.
"""

from pathlib import Path

import pytest

from tests.system.release.examples import PRINTED, printed


pytestmark = pytest.mark.system


pytest.importorskip("langchain")


def test_the_example_stops_a_stuck_agent_and_it_answers(tmp_path: Path) -> None:
    assert printed("langchain_agent", tmp_path) == PRINTED["langchain_agent"]
