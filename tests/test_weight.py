"""
`python3 dev.py weight`: what counts as a line of code.
"""

import importlib.util
import json

from pathlib import Path
from types import ModuleType

import pytest


ROOT = Path(__file__).parents[1]
needs_ruff = pytest.mark.skipif(
    importlib.util.find_spec("ruff") is None, reason="ruff is not installed; `python3 dev.py lint` installs it"
)
SOURCE = '''\
"""
A module.
"""

import os  # for the page


PAGE = """
<p>

</p>
"""


def name(
    path: str,
) -> str:
    """The name."""
    # the last part
    return os.path.basename(
        path)
'''


@pytest.fixture
def weight() -> ModuleType:
    spec = importlib.util.spec_from_file_location("weight", ROOT / "weight.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_docstrings_comments_and_blank_lines_are_no_code_and_a_template_is(weight: ModuleType) -> None:
    assert weight.lines_of_python(SOURCE) == 1 + 4 + 3 + 2


def test_a_file_that_is_no_python_counts_without_blank_lines_and_comments(weight: ModuleType) -> None:
    assert weight.lines_of_text("# a policy\n\nname: x\n  # why\nguards: []\n") == 2


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("guardrails/session/calls/calls.py", "session"),
        ("guardrails/core/engine/decide.py", "core/engine"),
        ("guardrails/offline/pages/page.css", "offline/pages"),
        ("guardrails/agent/agent.py", "agent"),
        ("guardrails/types.py", "modules of the package"),
        ("guardrails/core/retries/cold.json", None),
        ("policies/default.yaml", "policies"),
        ("policies/policy.schema.json", None),
        ("policies/cases/default.yaml", None),
        ("benchmarks/loops/table.py", "benchmarks"),
        (".ci/run", "dev.py, weight.py, .ci/run"),
    ],
)
def test_a_file_is_counted_under_its_room(weight: ModuleType, path: str, name: str | None) -> None:
    assert weight.unit(Path(path)) == name


@needs_ruff
def test_the_layout_of_a_file_does_not_change_its_weight(weight: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "guardrails").mkdir()
    file = tmp_path / "guardrails" / "one.py"
    file.write_text("a = [1,\n2,\n3]; b = 4\n")
    assert weight.weigh(tmp_path) == {"modules of the package": 2}


@needs_ruff
def test_a_clone_without_the_old_revision_prints_the_stored_figures(
    weight: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in weight.PARTS:
        (tmp_path / part).write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(weight, "ROOT", tmp_path)
    monkeypatch.setattr(weight, "then", lambda revision: None)
    assert weight.main() == 0
    assert capsys.readouterr().out.endswith(
        "31867        0  -100.0 %\n"
        "benchmarks                                         3469        0  -100.0 %\n"
        "This clone does not hold f0dc1a3: its figures are the stored ones.\n"
    )
    assert weight.main("--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["stored"]
    assert told["before"]["total"] == 31867
    with pytest.raises(SystemExit):
        weight.main("0123456")
