"""
The code of docs/sandbox.md, run as it stands.
"""

import re

from pathlib import Path

import pytest

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.sandbox import bubblewrap


PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()


@pytest.mark.system
def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        bubblewrap()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    [block, said] = re.findall(r"```(?:python|text)\n([^$].*?)```", PAGE, re.DOTALL)
    exec(compile(block, "sandbox.md", "exec"), {})
    assert capsys.readouterr().out.replace("\n\n", "\n") == said
