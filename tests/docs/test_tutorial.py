"""
The pages that are followed step by step: what they say to save is saved, what they say to run is run.
"""

import os
import re
import subprocess
import sys

from pathlib import Path

import pytest


pytestmark = pytest.mark.system


ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(.*?)^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""What stands before it, its language, its text."""
SAVED = re.compile(r"[Ss]ave this as\s+`([^`]+)`[^`]*\Z")
FOLLOWED = ["tutorial.md", "extend.md"]


def follow(page: Path, folder: Path) -> list[tuple[str, str]]:
    """
    Each command of *page* with what it has to print, and what it printed, as whole consoles; all is done in *folder*.

    A command in a block of `sh` is run only: what it prints is not shown.
    """
    done = []
    for before, language, text in BLOCK.findall(page.read_text()):
        name = SAVED.search(before)
        if name is not None:
            target = folder / name[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif language == "console":
            told = ""
            for line in text.splitlines(keepends=True):
                if line.startswith("$ "):
                    told += line + ran(line.removeprefix("$ ").split(), folder)
            done.append((text, told))
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith(("guardrails ", "python ")):
                    ran(line.split(), folder)
                    done.append(("", ""))
    return done


def ran(words: list[str], folder: Path) -> str:
    """
    What a command prints in *folder*; raises if it fails.
    """
    program, *rest = words
    command = [sys.executable, *rest] if program == "python" else [sys.executable, "-m", program, *rest]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), "COLUMNS": "80"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return timeless(done.stdout)


def timeless(text: str) -> str:
    """
    *text* without what depends on the machine.
    """
    return re.sub(r"\d+ passed in [\d.]+s", "passed", re.sub(r'"seconds_left":\d+', '"seconds_left":604800', text))


@pytest.mark.system
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_page_that_is_followed_literally_does_what_it_says(name: str, tmp_path: Path) -> None:
    consoles = follow(ROOT / "docs" / name, tmp_path)
    assert consoles
    for shown, told in consoles:
        assert told == shown
