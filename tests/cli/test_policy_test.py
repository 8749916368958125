"""
The command `policy test`.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from tests.tables import table


POLICY = "version: 1\nbudget: {max_calls: 2}\n"
FILES = Path(__file__).with_name("files")
CASES = (FILES / "team.cases.yaml").read_text()
WRONG = (FILES / "wrong.yaml").read_text()


def guardrails(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", "test", *arguments])


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("team.yaml", POLICY), ("team.cases.yaml", CASES), ("wrong.yaml", WRONG)):
        (tmp_path / name).write_text(text)
    return tmp_path


@table("names", [[], ["default"], ["strict"], ["observe"]])
def test_the_shipped_policies_pass_their_cases(names: list[str]) -> None:
    tested = guardrails(*names)
    assert (tested.exit_code, tested.stderr) == (0, "")
    cases, passed = tested.stdout.removesuffix(" passed\n").split(" cases, ")
    assert int(cases) == int(passed) >= 18


def test_the_schema_for_editors_is_printed() -> None:
    said: Any = json.loads(guardrails("--schema").stdout)
    assert said["required"] == ["version", "cases"]
    assert set(said["properties"]) == {"version", "policy", "cases"}


@pytest.mark.usefixtures("team")
@table(
    "arguments, told",
    [
        (["team.yaml"], "2 cases, 2 passed\n"),
        (["team.yaml", "-k", "two"], "1 case, 1 passed\n"),
        (["team.yaml", "-k", "REFUSED"], "1 case, 1 passed\n"),
    ],
)
def test_the_cases_of_a_policy_are_found_beside_it_and_chosen_by_a_part_of_their_name(
    arguments: list[str], told: str
) -> None:
    tested = guardrails(*arguments)
    assert (tested.exit_code, tested.stdout, tested.stderr) == (0, told, "")


@pytest.mark.usefixtures("team")
def test_a_failed_case_is_one_line_and_exit_code_1() -> None:
    named = ("team.yaml", "team.cases.yaml", "wrong.yaml")
    tested, data = guardrails(*named), guardrails(*named, "--json")
    assert tested.exit_code == data.exit_code == 1
    assert tested.stdout.splitlines() == [
        r"wrong.yaml:7: the second is refused: call `b\x1b[2J`: expected deny duplicates.window; decided allow",
        "3 cases, 2 passed, 1 failed",
    ]
    assert tested.stderr == "wrong.yaml: written for the policy `other`, run by `team.yaml`\n"
    said = json.loads(data.stdout)
    assert (said["ok"], said["cases"], said["passed"], said["failed"]) == (False, 3, 2, 1)
    [failure] = said["suites"][1]["cases"][0]["failures"]
    assert (failure["line"], failure["expected"], failure["decided"]) == (7, "deny duplicates.window", "allow")
