"""
The script that compares two versions of the library byte for byte: it finds a difference, and none in the same twice.
"""

import ast
import shutil

from pathlib import Path

import pytest

from benchmarks.equality.__main__ import told
from benchmarks.equality.compare import came_up, different, figures
from benchmarks.equality.trees import ROOT, exported, lived


SESSIONS, SEED = 6, 1
SAID = "Stopping tool loop."


@pytest.mark.slow
def test_the_same_library_says_the_same_and_a_planted_word_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = tmp_path / "planted"
    for folder in ("guardrails", "policies"):
        shutil.copytree(ROOT / folder, planted / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (planted / "guardrails").rglob("*.py"):
        file.write_text(file.read_text().replace(SAID, SAID.upper()))

    first, second, other = lived([ROOT, ROOT, planted], SESSIONS, SEED)

    assert different(first, second) == {}
    assert told(first, second) == 0
    assert {"success", "error", "denied", "limit_reached"} <= came_up(first)[0].keys()
    assert figures(first)["state"] >= SESSIONS
    capsys.readouterr()
    assert told(first, other) == 1
    shown = capsys.readouterr().out
    assert SAID in shown
    assert SAID.upper() in shown


def test_the_sessions_know_only_what_the_package_offers_to_all() -> None:
    for file in (ROOT / "benchmarks/equality").glob("*.py"):
        imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
        inner = [node.module for node in imports if (node.module or "").startswith("guardrails.")]
        assert inner == [], file.name


def test_a_revision_that_git_does_not_know_is_named() -> None:
    with (
        pytest.raises(ValueError, match=r"`no-such-revision` is neither a file nor a revision"),
        exported("no-such-revision"),
    ):
        pass
