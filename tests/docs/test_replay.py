"""
What docs/replay.md shows.
"""

import json
import re

from pathlib import Path

import pytest

from typer.testing import CliRunner

from guardrails.cli import app


GUIDE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()


def test_the_example_prints_what_the_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ((lines,), (shown,)) = (re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL) for kind in ("json", "console"))
    Path("calls.jsonl").write_text(lines)
    command, _, said = shown.partition("\n")
    printed = CliRunner(env={"COLUMNS": "100"}).invoke(app, command.split()[2:]).stdout
    assert printed.startswith(said)
    told = [json.loads(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    assert [line["decision"] for line in told] == ["allow", "deny", "deny"]
    assert all(f"`{name}`" in GUIDE for name in told[0])
