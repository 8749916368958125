"""
The programs in `examples/` do what their page says.
"""

import os
import re
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from tests import children
from tests.children import ROOT
from tests.stores.servers import shared, shared_postgres


FOLDER = ROOT / "examples"
PRINTED = dict(
    re.findall(r"^`(\w+)\.py`:\n\n```text\n(.*?)```$", (FOLDER / "README.md").read_text(), re.DOTALL | re.MULTILINE)
)
"""What the page says that each prints."""


def ran(name: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """
    The program *name*, run with *arguments* in *folder* without any key.
    """
    own = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "HOME": str(folder)}
    own = {key: value for key, value in os.environ.items() if "API_KEY" not in key} | own
    return children.ran(sys.executable, FOLDER / f"{name}.py", *arguments, cwd=folder, env=own)


def printed(name: str, folder: Path) -> str:
    """
    What the program *name* prints in *folder*, without spaces at the ends of lines.
    """
    done = ran(name, folder)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "it cleans up after itself"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


NEEDS = {"agent_with_a_budget": "openai", "train_a_week": "duckdb", "refund_agent": "cel_expr_python"}


def test_the_page_shows_what_every_program_prints() -> None:
    assert {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("test_")} == set(PRINTED)


# `tests/hosts/test_langchain.py` runs the other one, where its host is installed.
@pytest.mark.parametrize("name", sorted(PRINTED.keys() - {"langchain_agent"}))
def test_a_program_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    assert printed(name, tmp_path) == PRINTED[name]


@pytest.mark.parametrize("server", [shared, shared_postgres])
def test_refund_agents_share_their_limit_on_a_server(server: Any, tmp_path: Path) -> None:
    pytest.importorskip("cel_expr_python")
    assert ran("refund_agent", tmp_path, server().url).stdout == PRINTED["refund_agent"]
