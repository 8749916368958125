"""
The version is said in one place, and everything else reads it there.
"""

import re
import subprocess
import sys
import tomllib

from pathlib import Path

import pytest

from guardrails import __version__


ROOT = Path(__file__).parents[2]
PLACE = ROOT / "guardrails/core/values/version.py"


def test_the_build_reads_the_version_where_the_library_says_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert ROOT / project["tool"]["hatch"]["version"]["path"] == PLACE
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", __version__)


@pytest.mark.system
def test_the_command_says_it() -> None:
    done = subprocess.run([sys.executable, "-m", "guardrails", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"guardrails {__version__}\n"
