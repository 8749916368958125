"""
The page "Write a guard", followed to the letter.
"""

import json
import re
import subprocess
import sys

from pathlib import Path

import pytest

from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard
from guardrails.policy.own_guards import load_guards


PAGE = Path(__file__).parents[2] / "docs" / "guards" / "write.md"
BLOCK = re.compile(r"(.*?)^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""What stands before it, its language, its text."""
SAVED = re.compile(r"Save this as\s+`([^`]+)`")
WAYS = "settings", "but", "mode"
"""What a guard has beside its hooks."""


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Where everything is saved that the page says to save.
    """
    made = tmp_path_factory.mktemp("page")
    for before, _, text in BLOCK.findall(PAGE.read_text()):
        name = SAVED.search(before)
        if name is not None:
            (made / name[1]).write_text(text)
    return made


def test_every_file_of_the_page_is_saved(folder: Path) -> None:
    assert {path.name for path in folder.glob("*.*")} >= {
        "recipients.py",
        "policy.yaml",
        "run.py",
        "test_recipients.py",
    }


def test_the_program_prints_what_the_page_shows(folder: Path) -> None:
    [shown] = [text for _, language, text in BLOCK.findall(PAGE.read_text()) if language == "text"]
    assert run(folder, "run.py") == shown


def test_the_commands_print_what_the_page_shows(folder: Path) -> None:
    [shown] = [text for _, language, text in BLOCK.findall(PAGE.read_text()) if language == "console"]
    told = ""
    for line in shown.splitlines():
        if line.startswith("$ guardrails "):
            told += f"{line}\n{run(folder, '-m', *line.removeprefix('$ ').split())}"
    assert told == shown


def test_the_schema_has_the_guard_in_the_policy_in_its_rules_and_in_its_scopes(folder: Path) -> None:
    run(folder, "-m", "guardrails", "policy", "schema", "--guards", "recipients.py", "-o", "own.schema.json")
    schema = json.loads((folder / "own.schema.json").read_text())
    assert "recipients" in schema["properties"]
    for place in ("ToolRule", "Scope"):
        assert "recipients" in schema["$defs"][place]["properties"]
    settings = [each["properties"] for name, each in schema["$defs"].items() if name.endswith("Recipients")]
    assert settings
    assert all({"mode", "limit", "max_people", "argument"} == each.keys() for each in settings)


def test_the_test_of_the_page_passes(folder: Path) -> None:
    assert "1 passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_recipients.py")


def test_a_mistake_in_the_settings_of_an_own_guard_is_told_with_its_place(folder: Path) -> None:
    (folder / "wrong.yaml").write_text(
        "version: 1\nrecipients: {limit: 0, argumnt: to}\nscopes:\n  user: {recipient: {}}\n"
    )
    command = [sys.executable, "-m", "guardrails", "policy", "check", "--guards", "recipients.py", "wrong.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line.startswith("wrong.yaml:")] == [
        "wrong.yaml:2:21: recipients.limit: must be at least 1, got `0`",
        "wrong.yaml:2:24: unknown key `argumnt`, did you mean `argument`?",
        "wrong.yaml:4:10: unknown key `recipient`, did you mean `recipients`?",
    ]


def test_the_page_tells_of_every_hook() -> None:
    text = PAGE.read_text()
    hooks = [name for name in vars(Guard) if not name.startswith("_") and name not in ("name", *WAYS)]
    assert [name for name in hooks if not re.search(rf"`{name}\b", text)] == ["unwritten"]


def test_no_shipped_guard_has_a_hook_that_an_own_guard_has_not() -> None:
    hooks = {name for name in vars(Guard) if not name.startswith("_")}
    for cls in GUARDS:
        inherited = {name for base in cls.__mro__[1:-1] for name in vars(base)}
        assert inherited - {name for name in inherited if name.startswith("_")} <= hooks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no file `.*` with guards"),
        ("x = 1", "defines no guard: write `@guard` above a `class Mine"),
        ("raise ValueError('no')", "cannot be run: ValueError: no"),
    ],
)
def test_a_file_without_guards_is_told_of(text: str | None, said: str, tmp_path: Path) -> None:
    from guardrails import PolicyError

    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PolicyError, match=said):
        load_guards(str(path))
