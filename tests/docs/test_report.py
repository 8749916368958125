"""
The page of the report, run as it stands.
"""

import re
import shlex

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails.cli import app


PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
MORE = "..."
"""A shown output goes on."""


def test_what_the_page_shows_is_what_its_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, names, shown = "", dict[str, Any](), 0
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(text, "report.md", "exec"), names)
        elif language == "sh" and "RECORDS" not in text:
            (command,) = text.splitlines()
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert done.exit_code == 0, done.output
            printed = done.stdout
        elif language == "text":
            expected = text.rstrip().removesuffix(MORE).rstrip()
            got = printed.rstrip()
            assert (got[: len(expected)] if text.rstrip().endswith(MORE) else got) == expected
            shown += 1
    assert shown == 4
