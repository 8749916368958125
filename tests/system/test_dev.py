"""
`dev.py`: what it does where a Python, a virtual environment or an installation is not as it should be.

No network: the interpreters here are shell scripts that write down how they were called.
"""

import ast
import importlib.util
import re
import runpy
import shutil
import subprocess
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


def test_it_names_no_registry() -> None:
    assert "://" not in (ROOT / "dev.py").read_text()


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


def test_a_changed_project_is_installed_again_in_the_same_environment(dev: Any, scripted: Any, asked: Any) -> None:
    dev.ready("test", base=scripted())
    (dev.ROOT / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    dev.ready("test", base=scripted())
    assert len(asked("-m venv")) == 1
    assert len(asked("-m pip install")) == 2


@pytest.mark.parametrize(("first", "then", "times"), [("openai", "test", 2), ("dev", "test", 1), ("test", "openai", 1)])
def test_what_a_larger_set_has_installed_is_not_installed_again(
    dev: Any, scripted: Any, asked: Any, first: str, then: str, times: int
) -> None:
    dev.ready(first, base=scripted())
    dev.ready(then, base=scripted())
    assert len(asked("-m pip install")) == times


def test_a_failed_installation_is_said_and_tried_again(
    dev: Any, scripted: Any, asked: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        dev.ready("test", base=scripted(install=1))
    assert ended.value.code == 2
    assert "the installation failed" in capsys.readouterr().err
    scripted("a repository/.venv/bin/python")
    dev.ready("test", base=scripted())
    assert len(asked("-m venv")) == 1
    assert len(asked("-m pip install")) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda venv: (venv / "bin" / "python").unlink(),
        lambda venv: (venv / "bin" / "python").write_text("no program"),
        lambda venv: (venv / "bin" / "python").write_text("#!/bin/sh\necho 2.7\n"),
        lambda venv: (venv / "bin" / "python").write_text("#!/bin/sh\nexit 1\n"),
    ],
    ids=["removed", "damaged", "another version", "failing"],
)
def test_a_broken_environment_is_made_again(dev: Any, scripted: Any, asked: Any, spoil: Callable[[Path], Any]) -> None:
    base = scripted()
    dev.ready("test", base=base)
    spoil(dev.ROOT / ".venv")
    dev.ready("test", base=base)
    assert len(asked("-m venv")) == 2
    assert len(asked("-m pip install")) == 2


@pytest.mark.parametrize("left", ["folder", "file", "link to nowhere", "link to a folder", "no pip"])
def test_whatever_stands_in_the_place_of_the_environment_makes_room(
    dev: Any, scripted: Any, tmp_path: Path, left: str
) -> None:
    venv, elsewhere = dev.ROOT / ".venv", tmp_path / "elsewhere"
    match left:
        case "folder":
            (venv / "lib").mkdir(parents=True)
        case "file":
            venv.write_text("")
        case "link to nowhere":
            venv.symlink_to(elsewhere)
        case "link to a folder":
            elsewhere.mkdir()
            venv.symlink_to(elsewhere)
        case "no pip":
            scripted("a repository/.venv/bin/python", pip=1)
    dev.ready("test", base=scripted())
    assert (venv / "bin" / "python").is_file()
    assert (venv / "installed.txt").is_file()
    assert not elsewhere.exists() or not list(elsewhere.iterdir())


def test_without_ensurepip_the_one_command_is_named_and_nothing_is_left(
    dev: Any, scripted: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        dev.ready("openai", base=scripted(venv=1, ensurepip=1))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("apt-get install python3-venv\n")
    assert not (dev.ROOT / ".venv").exists()


def test_another_failure_to_make_an_environment_is_said_as_it_is(dev: Any, tmp_path: Path, capsys: Any) -> None:
    base = tmp_path / "python"
    base.write_text('#!/bin/sh\n[ "$2" = venv ] && echo "the disk is full" >&2 && exit 1\nexit 0\n')
    base.chmod(0o755)
    with pytest.raises(SystemExit):
        dev.ready("openai", base=base)
    assert capsys.readouterr().err == "the disk is full\n"


def test_uv_is_used_where_it_is_on_the_path(
    dev: Any, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, uv = scripted(), tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path / "uv.log"}\n'
        f'[ "$1" = venv ] && mkdir -p "$4/bin" && cp {base} "$4/bin/python"\nexit 0\n'
    )
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{uv.parent}:{tools(tmp_path)}")
    python = dev.ready("test", base=base)
    assert (tmp_path / "uv.log").read_text().splitlines() == [
        f"venv --python {base} {dev.ROOT / '.venv'}",
        f"pip install --python {python} --quiet --editable .[test]",
    ]


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


def test_a_step_that_is_killed_is_no_success(dev: Any) -> None:
    assert dev.run("/bin/sh", "-c", "kill -9 $$")[0] == 9


def test_the_gate_calls_exactly_the_command_of_the_readme() -> None:
    gate = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "set -euo pipefail" in gate
    assert next(line for line in gate if line.startswith("python3 ")) == "python3 dev.py test"
    assert "\npython3 dev.py test " in (ROOT / "README.md").read_text()


@pytest.mark.system
def test_a_half_made_environment_becomes_a_real_one(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = dev.ROOT / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to("/nowhere/python3")
    dev.make(venv, getattr(sys, "_base_executable", sys.executable), None)
    pip = subprocess.run([venv / "bin" / "python", "-m", "pip", "--version"], capture_output=True, check=False)
    assert pip.returncode == 0


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


def test_a_host_that_is_not_there_is_told_of(hosts: Any, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        hosts("glass")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "there is no host `glass`; there are wood, stone\n"


def test_docstrings_comments_and_blank_lines_are_no_code_and_a_template_is() -> None:
    source = '"""\nA module.\n"""\n\nimport os  # why\n\nPAGE = """\n<p>\n\n</p>\n"""\n\n\ndef f(\n    x,\n):\n    """It."""\n    # why\n    return x\n'
    assert module_of("weight").code_lines(source) == 1 + 5 + 3 + 1


def test_a_data_file_that_a_call_reads_counts_with_each_line(tmp_path: Path) -> None:
    for room in ("core", "cli"):
        (tmp_path / "guardrails" / room).mkdir(parents=True)
        (tmp_path / "guardrails" / room / "words.yaml").write_text("a: 1\n# b\n")
    weigh = module_of("weight").weigh
    assert [weigh(tmp_path / "guardrails" / room, tmp_path) for room in ("core", "cli")] == [2, 0]
