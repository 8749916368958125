"""
The page "Write a guard", followed to the letter.
"""

import re
import subprocess
import sys

from pathlib import Path

import pytest


pytestmark = pytest.mark.system


PAGE = Path(__file__).parents[3] / "docs" / "guards" / "write.md"
BLOCK = re.compile(r"(.*?)^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""What stands before it, its language, its text."""
SAVED = re.compile(r"Save this as\s+`([^`]+)`")


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
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


def test_the_test_of_the_page_passes(folder: Path) -> None:
    assert "1 passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_recipients.py")
