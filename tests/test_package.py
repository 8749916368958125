"""
The package as a whole: what it exports, how light it is to import, and the name it shares.
"""

import ast
import importlib
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

import guardrails


ROOT = Path(__file__).parents[1]
HEAVY = ["pydantic", "sklearn", "openai", "yaml", "typer", "sqlite3", "asyncio", "numpy", "rich", "orjson"]


def test_all_names_are_there_sorted_and_declared_for_type_checkers() -> None:
    assert guardrails.__all__ == sorted(guardrails.__all__)
    for name in guardrails.__all__:
        assert getattr(guardrails, name).__name__ == name
    tree = ast.parse((ROOT / "guardrails" / "__init__.py").read_text())
    declared = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert declared == set(guardrails.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `Gaurd`"):
        guardrails.Gaurd  # noqa: B018


def run(code: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=cwd)  # noqa: S603


def test_the_bare_import_brings_none_of_the_heavy_packages() -> None:
    done = run(f"import sys, guardrails; print([m for m in {HEAVY} if m in sys.modules])", cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


def test_using_a_session_brings_neither_openai_nor_a_learner_nor_a_database() -> None:
    code = (
        "import sys; from guardrails import Policy, Budget\n"
        "Policy([Budget(max_calls=2)]).session('s').call('t', {}, lambda *_: 1)\n"
        "print([m for m in ['openai', 'sklearn', 'sqlite3', 'typer', 'yaml', 'numpy'] if m in sys.modules])"
    )
    assert run(code, cwd=ROOT).stdout.strip() == "[]"


def test_the_other_distribution_of_this_name_is_detected(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "guardrails", tmp_path / "guardrails", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "guardrails" / "hub").mkdir()
    (tmp_path / "guardrails" / "guard.py").write_text("")
    done = run("import guardrails", cwd=tmp_path)
    assert done.returncode == 1
    assert "guardrails-ai" in done.stderr.splitlines()[-1]
    assert "Uninstall both" in done.stderr


def test_every_public_name_has_a_docstring() -> None:
    for name in guardrails.__all__:
        assert (getattr(guardrails, name).__doc__ or "").strip(), name


def test_the_shipped_policies_are_found_by_name() -> None:
    for name in ("default", "strict", "observe"):
        policy = guardrails.Policy.load(name)
        assert len(policy.chain) > 5
        assert importlib.import_module("guardrails.policy.file").find(name).name == f"{name}.yaml"
