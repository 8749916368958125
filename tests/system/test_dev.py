"""
`dev.py` and `weight.py`: what they do where a Python, a virtual environment or an installation is not as it should be.

No network: the interpreters here are shell scripts that write down how they were called.
"""

import ast
import importlib.util
import runpy
import shutil
import sys

from pathlib import Path
from typing import Any

import pytest


ROOT = Path(__file__).parents[2]
HERE = "{}.{}".format(*sys.version_info[:2])
PYTHON = (ROOT / "tests/system/python.sh").read_text()


def module_of(program: str) -> Any:
    spec = importlib.util.spec_from_file_location(program, ROOT / f"{program}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """
    The module, at work in a repository of its own, on a machine without uv and any other Python.
    """
    module = module_of("dev")
    repository, tools = tmp_path / "a repository", tmp_path / "tools"
    repository.mkdir()
    (repository / "pyproject.toml").write_text("[project]\n")
    tools.mkdir()
    for name in ("cp", "mkdir"):
        (tools / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setattr(module, "ROOT", repository)
    monkeypatch.setenv("PATH", str(tools))
    return module


def scripted(tmp_path: Path, path: str = "a repository/.venv/bin/python") -> Path:
    """
    An interpreter that is a script.
    """
    script = tmp_path / path
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(PYTHON.format(log=tmp_path / "log", version=HERE))
    script.chmod(0o755)
    return script


def asked(tmp_path: Path, start: str) -> list[str]:
    """
    What all of them were asked.
    """
    return [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith(start)]


def test_a_python_that_is_too_old_reads_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "dev.py"), run_name="__main__")
    assert ended.value.code == 2
    needed = "dev.py needs Python 3.11 or newer, this is 3.9: run it as `python3.11 dev.py`, say\n"
    assert capsys.readouterr().err == needed
    ast.parse((ROOT / "dev.py").read_text(), feature_version=(3, 7))


def test_an_environment_is_made_and_filled_once(dev: Any, tmp_path: Path) -> None:
    base = scripted(tmp_path, "base/python")
    for _ in range(2):
        assert dev.ready("openai", base=base) == dev.ROOT / ".venv/bin/python"
    assert asked(tmp_path, "-m venv") == [f"-m venv {dev.ROOT / '.venv'}"]
    assert asked(tmp_path, "-m pip install") == ["-m pip install --quiet --editable .[openai]"]


def test_all_steps_of_a_target_are_run_and_the_worst_code_counts(dev: Any, tmp_path: Path) -> None:
    scripted(tmp_path)
    assert dev.main("lint") == 3
    assert asked(tmp_path, "-m ruff") == ["-m ruff check .", "-m ruff format --check ."]
    assert len(asked(tmp_path, "-c from importlinter")) == 1
    # What starts nothing and what starts something are two runs.
    assert dev.main("test", "-k", "x") == dev.main("system") == 0
    first, second = asked(tmp_path, "-m pytest")
    assert first.endswith("-m not system --ignore=tests/system -k x")
    assert second.endswith("-m system")


def test_the_gate_calls_exactly_the_command_of_the_readme() -> None:
    gate = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "set -euo pipefail" in gate
    assert next(line for line in gate if line.startswith("python3 ")) == "python3 dev.py test"
    assert "\npython3 dev.py test " in (ROOT / "README.md").read_text()


def test_docstrings_comments_and_blank_lines_are_no_code_and_data_that_a_call_reads_is(tmp_path: Path) -> None:
    weight = module_of("weight")
    source = '"""\nA module.\n"""\n\nimport os  # why\n\nPAGE = """\n<p>\n\n</p>\n"""\n\n\ndef f(\n    x,\n):\n    """It."""\n    # why\n    return x\n'
    assert weight.code_lines(source) == 1 + 5 + 3 + 1
    for room, lines in (("core", 2), ("cli", 0)):
        folder = tmp_path / "guardrails" / room
        folder.mkdir(parents=True)
        (folder / "words.yaml").write_text("a: 1\n# b\n")
        assert weight.weigh(folder, tmp_path) == lines
