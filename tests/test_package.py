"""
The package as a whole: what it exports, how light it is to import, and the name it shares.
"""

import ast
import importlib
import shutil
import sys

from pathlib import Path
from textwrap import indent

import pytest

import guardrails

from tests.children import ROOT, ran
from tests.tables import table


TYPED = "pydantic pydantic_core annotated_types typing_extensions"
HEAVY = f"""{TYPED} jsonschema_rs typer rich openai asyncio sqlite3 email importlib.metadata difflib genai_prices
    tree_sitter sklearn numpy guardrails.core.commands guardrails.core.result.waits"""
"""What takes long to import and what a start does without."""
HELP = """
from typer.main import get_command
from guardrails.cli import app
named = get_command(app).commands.items()
lines = [(name,) for name, _ in named]
lines += [(name, below) for name, command in named for below in getattr(command, 'commands', ())]
for line in [('--version',), ('--help',), *((*line, '--help') for line in lines)]:
    try:
        app(line, prog_name='guardrails')
    except SystemExit as ended:
        assert not ended.code, line
"""
IN_CODE = """
from guardrails import Budget, Policy, Tool
from guardrails.core.chain import Rule
rules = [Rule(match='t*', declared={'stable': True}, guards={'budget': {'max_calls': 1}})]
policy = Policy([Budget(max_calls=2)], tools=[Tool(name='t')], rules=rules)
policy.session('s').call('t', {}, lambda *_: 1)
"""


def test_all_names_are_there_sorted_documented_and_declared_for_type_checkers() -> None:
    assert guardrails.__all__ == sorted(guardrails.__all__)
    for name in guardrails.__all__:
        found = getattr(guardrails, name)
        assert getattr(found, "__name__", name) == name
        assert (found.__doc__ or "").strip(), name
    imports = [
        node for node in ast.walk(ast.parse(Path(guardrails.__file__).read_text())) if isinstance(node, ast.ImportFrom)
    ]
    declared = {alias.asname for node in imports for alias in node.names if alias.asname}
    assert declared == {*guardrails.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute `Gaurd`"):
        guardrails.__getattr__("Gaurd")
    with pytest.raises(AttributeError, match="did you mean `Budget`"):
        guardrails.__getattr__("Bugdet")
    for place, names in guardrails._ELSEWHERE.items():
        for name in names.split():
            assert getattr(importlib.import_module(f"guardrails.{place}"), name).__name__
            with pytest.raises(ImportError, match=rf"write `from guardrails\.{place} import {name}`"):
                guardrails.__getattr__(name)


@pytest.mark.system
@table(
    "code, brings, without",
    [
        ("import guardrails", "guardrails", ""),
        ("from guardrails import Policy; Policy.load('default')", "guardrails.policy.policy", HEAVY),
        *(
            (f"from guardrails import Policy; Policy.load({name!r})", "guardrails.policy.policy", TYPED)
            for name in ("strict", "observe", "agent")
        ),
        (IN_CODE, "guardrails.session.session", f"{HEAVY} yaml"),
        (HELP, "guardrails.cli.replay", "pydantic rich openai asyncio sqlite3 yaml orjson numpy"),
    ],
)
def test_a_start_brings_nothing_that_it_does_without(code: str, brings: str, without: str) -> None:
    told = "print('\\n', *sorted(set(sys.modules) - before), file=sys.stderr)"
    program = f"import sys; before = set(sys.modules)\ntry:\n{indent(code, '    ')}\nfinally:\n    {told}"
    done = ran(sys.executable, "-c", program)
    modules = set(done.stderr.split())
    assert brings in modules
    assert modules & {*without.split()} == set()
    assert without or modules == {brings}


@pytest.mark.system
def test_the_other_distribution_of_this_name_is_detected(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "guardrails", tmp_path / "guardrails", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "guardrails" / "hub").mkdir()
    (tmp_path / "guardrails" / "guard.py").write_text("")
    done = ran(sys.executable, "-c", "import guardrails", cwd=tmp_path, env=None)
    assert done.returncode == 1
    assert "guardrails-ai" in done.stderr.splitlines()[-1]
    assert "Uninstall both" in done.stderr
