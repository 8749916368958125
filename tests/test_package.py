"""
The package as a whole: what it exports, how light it is to import, and the name it shares.
"""

import ast
import importlib
import shutil
import subprocess
import sys

from pathlib import Path
from textwrap import indent

import pytest

import guardrails


ROOT = Path(__file__).parents[1]
HEAVY = {
    *("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "jsonschema_rs", "typer", "rich", "openai"),
    *("asyncio", "sqlite3", "email", "importlib.metadata", "difflib"),
    *("genai_prices", "tree_sitter", "sklearn", "numpy"),
    "guardrails.core.commands",
}
"""What takes long to import and what a start does without."""


def test_all_names_are_there_sorted_and_declared_for_type_checkers() -> None:
    assert guardrails.__all__ == sorted(guardrails.__all__)
    for name in guardrails.__all__:
        assert getattr(getattr(guardrails, name), "__name__", name) == name
    tree = ast.parse((ROOT / "guardrails" / "__init__.py").read_text())
    declared = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert declared == {*guardrails.__all__, "__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `Gaurd`"):
        guardrails.Gaurd  # noqa: B018


def run(code: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=cwd)


def brought(code: str) -> set[str]:
    """
    The modules that *code* imports in a new interpreter.
    """
    told = "print('\\n', *sorted(set(sys.modules) - before), file=sys.stderr)"
    done = run(f"import sys; before = set(sys.modules)\ntry:\n{indent(code, '    ')}\nfinally:\n    {told}", cwd=ROOT)
    return set(done.stderr.split())


@pytest.mark.system
def test_the_bare_import_brings_nothing_else() -> None:
    assert brought("import guardrails") == {"guardrails"}


@pytest.mark.system
def test_a_start_brings_nothing_that_a_shipped_policy_does_without() -> None:
    modules = brought("from guardrails import Policy; Policy.load('default')")
    assert "guardrails.policy.policy" in modules
    assert not modules & {*HEAVY, "guardrails.core.result.waits"}


@pytest.mark.system
@pytest.mark.parametrize("name", ["strict", "observe", "agent"])
def test_no_shipped_policy_brings_pydantic(name: str) -> None:
    modules = brought(f"from guardrails import Policy; Policy.load({name!r})")
    assert "guardrails.policy.policy" in modules
    assert not modules & {"pydantic", "pydantic_core", "annotated_types", "typing_extensions"}


@pytest.mark.system
def test_help_and_version_bring_neither_pydantic_nor_rich() -> None:
    code = (
        "from typer.main import get_command\n"
        "from guardrails.cli import app\n"
        "named = [(name, command) for name, command in get_command(app).commands.items()]\n"
        "lines = [(name,) for name, _ in named]\n"
        "lines += [(name, below) for name, command in named for below in getattr(command, 'commands', ())]\n"
        "for line in [('--version',), ('--help',), *((*line, '--help') for line in lines)]:\n"
        "    try:\n"
        "        app(line, prog_name='guardrails')\n"
        "    except SystemExit as ended:\n"
        "        assert not ended.code, line\n"
    )
    modules = brought(code)
    assert {"typer", "guardrails.cli.replay"} <= modules
    assert not modules & {"pydantic", "rich", "openai", "asyncio", "sqlite3", "yaml", "orjson", "numpy"}


@pytest.mark.system
def test_a_session_of_settings_in_code_brings_no_more() -> None:
    code = (
        "from guardrails import Budget, Policy, Rule, Tool\n"
        "rules = [Rule(match='t*', declared={'stable': True}, guards={'budget': {'max_calls': 1}})]\n"
        "policy = Policy([Budget(max_calls=2)], tools=[Tool(name='t')], rules=rules)\n"
        "policy.session('s').call('t', {}, lambda *_: 1)\n"
    )
    modules = brought(code)
    assert "guardrails.session.session" in modules
    assert not modules & {*HEAVY, "yaml", "guardrails.core.result.waits"}


@pytest.mark.system
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
        assert len(policy.chain.guards) > 5
        assert importlib.import_module("guardrails.policy.file").find(name).name == f"{name}.yaml"
