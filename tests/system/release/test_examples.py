"""
The programs in `examples/` do what their page says.
"""

import os
import subprocess
import sys

from pathlib import Path

import pytest

from tests.tables import table

from .examples import FOLDER, PRINTED, PROGRAMS, printed


pytestmark = pytest.mark.system


NEEDS = {"agent_with_a_budget": "openai", "train_a_week": "duckdb"}
SLOW = {"train_a_week"}
IN_ITS_HOST = "langchain_agent"
"""Run by `tests/hosts/test_langchain_example.py`, where its host is installed."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.system] if name in SLOW else [])
        for name in PROGRAMS
        if name != IN_ITS_HOST
    ],
)
def test_a_program_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    assert printed(name, tmp_path) == PRINTED[name]


LACKING = {"agent_with_a_budget": "openai", "train_a_week": "train", "langchain_agent": "langchain"}
"""The extra that a program needs, by its name."""
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"openai", "duckdb", "langchain", "langchain_core"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
"""A `sitecustomize` module, so that processes that a program starts find as little."""


@table("name", [name for name in PROGRAMS if name in LACKING])
def test_a_program_whose_extra_is_not_installed_says_how_to_get_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    found = os.pathsep.join((str(tmp_path), str(FOLDER.parent)))
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": found, "TMPDIR": str(tmp_path)},
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert f'pip install "toolcall-guardrails[{LACKING[name]}]"' in done.stderr
    assert "Traceback" not in done.stderr
