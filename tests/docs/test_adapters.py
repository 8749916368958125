"""
The code of docs/adapters.md, run as it stands.
"""

import re

from pathlib import Path

import pytest


GUIDE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()


def test_the_end_of_a_loop_is_as_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    block = next(one for one in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "FinalAnswer" in one)
    exec(compile(block, "adapters.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert said[:5] == [
        "tools on run",
        "tools off again",
        "budget.max_calls",
        "tools off digest",
        "digest budget.max_calls",
    ]
    assert "search" in "".join(said[5:])


def test_the_control_flow_of_a_host_is_as_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    block = next(one for one in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "Interrupt" in one)
    exec(compile(block, "adapters.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["may I spend 150 USD? 1 0.8", "{'booked': 'h_1'} 1"]


def test_a_host_that_runs_the_tools_itself_tells_it_as_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    block = next(one for one in blocks if "claim=True" in one)
    exec(compile(block, "adapters.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["True call.in_flight", "True", "1 0.8"]
