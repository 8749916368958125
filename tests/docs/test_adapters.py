"""
The code of docs/adapters.md, run as it stands.
"""

import re

from pathlib import Path

import pytest


GUIDE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()


def test_the_end_of_a_loop_is_as_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    block = next(one for one in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "final_answer" in one)
    exec(compile(block, "adapters.md", "exec"), {})  # noqa: S102
    said = capsys.readouterr().out.splitlines()
    assert said[:5] == [
        "tools on run",
        "tools off again",
        "budget.max_calls",
        "tools off digest",
        "digest budget.max_calls",
    ]
    assert "search" in "".join(said[5:])
