"""
`dev.py`: what it does where a Python, a virtual environment or an installation is not as it should be.

No network: the interpreters here are shell scripts that write down how they were called.
"""

import ast
import importlib.util
import re
import runpy
import shutil
import sys

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


ROOT = Path(__file__).parents[2]
HERE = "{}.{}".format(*sys.version_info[:2])
PYTHON = """\
#!/bin/sh
echo "$@" >> {log}
case "$*" in
  "-c import sys"*) echo {version} ;;
  "-c import venv"*) exit {ensurepip} ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit {venv} ;;
  "-m pip --version") exit {pip} ;;
  "-m pip install"*) exit {install} ;;
esac
"""


def tools(tmp_path: Path) -> Path:
    """
    A folder of what the scripts need, for a PATH without any Python of this machine.
    """
    folder = tmp_path / "tools"
    folder.mkdir(exist_ok=True)
    for name in ("cp", "mkdir"):
        found = shutil.which(name)
        if found is not None and not (folder / name).exists():
            (folder / name).symlink_to(found)
    return folder


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
    The module, at work in a repository of its own, on a machine without uv.
    """
    module = module_of("dev")
    repository = tmp_path / "a repository"
    repository.mkdir()
    (repository / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(module, "ROOT", repository)
    monkeypatch.setenv("PATH", str(tools(tmp_path)))
    return module


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., Path]:
    """
    Makes an interpreter that is a script; `.calls()` of the module reads what all of them were asked.
    """

    def make(path: str = "base/python", **codes: Any) -> Path:
        settings = {"version": HERE, "ensurepip": 0, "venv": 0, "pip": 0, "install": 0, **codes}
        script = tmp_path / path
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(PYTHON.format(log=tmp_path / "log", **settings))
        script.chmod(0o755)
        return script

    return make


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[str], list[str]]:
    def lines(start: str) -> list[str]:
        log = tmp_path / "log"
        return [line for line in log.read_text().splitlines() if line.startswith(start)] if log.exists() else []

    return lines


def test_a_python_that_is_too_old_reads_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "dev.py"), run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "dev.py needs Python 3.11 or newer, this is 3.9: run it as `python3.11 dev.py`, say\n"
    )


def test_an_old_python_can_read_it_so_far() -> None:
    ast.parse((ROOT / "dev.py").read_text(), feature_version=(3, 7))


def test_all_that_it_can_do_is_listed(dev: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.main() == dev.main("--help") == 0
    listed = re.findall(r"^    (\w+)  ", dev.__doc__, re.MULTILINE)
    assert set(listed) == {*dev.STEPS, "hosts", "docs", "ci"}
    assert len(listed) <= 12
    with pytest.raises(SystemExit) as ended:
        dev.main("deploy")
    assert ended.value.code == 2
    assert "there is no target `deploy`" in capsys.readouterr().err


def test_it_stays_small() -> None:
    assert len((ROOT / "dev.py").read_text().splitlines()) <= 150


def test_an_environment_is_made_and_filled_once(dev: Any, scripted: Any, asked: Any) -> None:
    base = scripted()
    for _ in range(2):
        python = dev.ready("openai", base=base)
    assert python == dev.ROOT / ".venv" / "bin" / "python"
    assert asked("-m venv") == [f"-m venv {dev.ROOT / '.venv'}"]
    assert asked("-m pip install") == ["-m pip install --quiet --editable .[openai]"]


def test_all_steps_of_a_target_are_run_and_the_worst_code_counts(dev: Any, scripted: Any, asked: Any) -> None:
    venv = scripted("a repository/.venv/bin/python")
    venv.write_text(venv.read_text().replace("esac", '  *"ruff check"*) exit 3 ;;\nesac'))
    assert dev.main("lint") == 3
    assert [line for line in asked("-m") if " ruff " in line] == ["-m ruff check .", "-m ruff format --check ."]
    assert len(asked("-c from importlinter")) == 1


def test_what_starts_nothing_and_what_starts_something_are_two_runs(dev: Any, scripted: Any, asked: Any) -> None:
    scripted("a repository/.venv/bin/python")
    dev.main("test", "-k", "x")
    dev.main("system")
    first, second = asked("-m pytest")
    assert first.endswith("-m not system --ignore=tests/system -k x")
    assert second.endswith("-m system")


def test_the_gate_calls_exactly_the_command_of_the_readme() -> None:
    gate = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "set -euo pipefail" in gate
    assert next(line for line in gate if line.startswith("python3 ")) == "python3 dev.py test"
    assert "\npython3 dev.py test " in (ROOT / "README.md").read_text()


HOSTS = """
[tests]
packages = ["pytest==1"]
[wood]
extra = "wood"
packages = ["wood==1"]
[stone]
extra = "stone"
packages = ["stone==2"]
"""


@pytest.fixture
def hosts(dev: Any) -> Any:
    folder = dev.ROOT / "tests" / "hosts"
    folder.mkdir(parents=True)
    (folder / "versions.toml").write_text(HOSTS)
    (folder / "test_wood.py").touch()
    return dev.hosts


def test_a_host_is_installed_once_as_it_is_pinned(dev: Any, hosts: Any, scripted: Any, asked: Any) -> None:
    scripted("a repository/.hosts/wood/bin/python")
    assert hosts("wood") == hosts("wood") == 0
    assert asked("-m pip install") == ["-m pip install --quiet pytest==1 wood==1 --editable .[wood]"]
    assert ["/test_wood.py " in line for line in asked("-m pytest")] == [True, True]


def test_docstrings_comments_and_blank_lines_are_no_code_and_a_template_is() -> None:
    source = '"""\nA module.\n"""\n\nimport os  # why\n\nPAGE = """\n<p>\n\n</p>\n"""\n\n\ndef f(\n    x,\n):\n    """It."""\n    # why\n    return x\n'
    assert module_of("weight").code_lines(source) == 1 + 5 + 3 + 1


def test_a_data_file_that_a_call_reads_counts_with_each_line(tmp_path: Path) -> None:
    for room in ("core", "cli"):
        (tmp_path / "guardrails" / room).mkdir(parents=True)
        (tmp_path / "guardrails" / room / "words.yaml").write_text("a: 1\n# b\n")
    weigh = module_of("weight").weigh
    assert [weigh(tmp_path / "guardrails" / room, tmp_path) for room in ("core", "cli")] == [2, 0]
