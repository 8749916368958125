"""
The code of docs/adapters.md, run as it stands.
"""

import re

from pathlib import Path
from typing import Any

import pytest


GUIDE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()


def test_the_blocks_run_in_order_and_show_what_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = []
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(compile(block, "adapters.md", "exec"), names)  # noqa: S102
        printed.append(capsys.readouterr().out.splitlines())
    (flow,) = printed
    assert flow == ["may I spend 150 USD? 1 0.8", "{'booked': 'h_1'} 1"]
