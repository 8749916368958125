"""
The page on upgrades: its commands and its code run, and what it says of versions is so.

That old files go on, and newer ones are refused, is in `tests/golden`.
"""

import re
import shlex

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails import Budget, Policy, PolicyError, SqliteStore
from guardrails.cli import app
from guardrails.cli.store import SHOWN
from guardrails.core.packing import VERSION


PAGE = (Path(__file__).parents[2] / "docs" / "upgrades.md").read_text(encoding="utf-8")
KEPT = Path(__file__).parents[1] / "golden/0.2.0"
WORDS = " ".join(PAGE.split())


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_its_commands_and_its_code_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore("state.db") as store:
        Policy([Budget(max_calls=2)]).session("trip-42", store=store).call("search", {}, lambda *_: 1)
    (code,) = blocks("python")
    exec(compile(code, "upgrades.md", "exec"), {})
    assert re.fullmatch(r"trip-42 version \d+ \d+ bytes\n", capsys.readouterr().out)
    commands = [line for text in blocks("sh") for line in text.splitlines()]
    assert len(commands) == 5
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
    assert not list(SqliteStore("state.db").entries())


def test_what_it_says_of_versions_is_so() -> None:
    assert f"the first byte of its block, {VERSION}" in WORDS
    assert f"{SHOWN} at most unless `--limit`" in WORDS


def test_an_old_process_does_not_load_a_policy_that_uses_something_it_does_not_know(tmp_path: Path) -> None:
    """
    Why the policy is changed after the processes: what they do not know is a mistake, and never left out in silence.
    """
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nbudget: {max_calls: 3}\nof_the_next_version: {}\n", encoding="utf-8")
    with pytest.raises(PolicyError, match="3:1: unknown key `of_the_next_version`"):
        Policy.load(path)
