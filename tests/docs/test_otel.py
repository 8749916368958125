"""
What docs/otel.md shows and lists.
"""

import re

from pathlib import Path

import pytest


pytest.importorskip("opentelemetry")


ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "otel.md").read_text()


def test_the_snippets_run_and_do_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
    exec(compile(program, "docs/otel.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["success", "limit_reached"]
