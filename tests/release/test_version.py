"""
The version is said in one place, and everything else reads it there.
"""

import re
import subprocess
import sys
import tomllib

from pathlib import Path

from guardrails import __version__


ROOT = Path(__file__).parents[2]
PLACE = ROOT / "guardrails/core/values/version.py"
CODE = [
    path
    for folder in ("guardrails", "docs/site", "examples", ".github", "policies")
    for kind in ("py", "yaml", "yml", "json", "toml")
    for path in sorted((ROOT / folder).rglob(f"*.{kind}"))
]


def test_the_build_reads_the_version_where_the_library_says_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert ROOT / project["tool"]["hatch"]["version"]["path"] == PLACE
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)


def test_no_second_place_says_it() -> None:
    said = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])|^\s*__version__\s*[:=]", re.MULTILINE)
    assert [path for path in (*CODE, ROOT / "pyproject.toml", ROOT / "dev.py") if said.search(path.read_text())] == [
        PLACE
    ]


def test_the_changelog_says_it_or_has_changes_that_are_not_released() -> None:
    headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in {"Unreleased", __version__}


def test_the_command_says_it() -> None:
    done = subprocess.run([sys.executable, "-m", "guardrails", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"guardrails {__version__}\n"


def test_nothing_that_runs_asks_what_is_installed_for_it() -> None:
    asks = re.compile(r"metadata import .*\bversion\b|metadata\.version\(")
    # `guardrails doctor` compares what is installed: that is its work.
    running = [path for path in CODE if "guardrails" in path.parts and "doctor" not in path.parts]
    assert [path for path in running if asks.search(path.read_text())] == []
