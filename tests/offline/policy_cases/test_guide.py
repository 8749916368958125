"""
The guide to policy tests, run as it stands.
"""

import re

from pathlib import Path

import pytest

from typer.testing import CliRunner

from guardrails.cli import app
from guardrails.offline.policy_cases.steps import KINDS


GUIDE = (Path(__file__).parents[3] / "docs" / "policy.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("team.yaml", "team.cases.yaml"), blocks("yaml")[1:], strict=True):
        Path(name).write_text(text)


def test_the_example_gives_what_is_shown() -> None:
    [shown] = blocks("console")
    command, output = shown.split("\n", 1)
    tested = CliRunner().invoke(app, command.removeprefix("$ guardrails ").split())
    assert (tested.exit_code, tested.stdout, tested.stderr) == (1, output, "")


def test_every_kind_of_step_and_every_key_is_told_of() -> None:
    for key in (key for kind in KINDS.values() for key in kind.model_fields):
        assert f"`{key}:" in GUIDE or f"`{key}`" in GUIDE, key
