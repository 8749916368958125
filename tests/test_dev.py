"""
`dev.py`: what it does where a Python, a virtual environment or an installation is not as it should be.

No network: the interpreters here are shell scripts that write down how they were called.
"""

import ast
import importlib.util
import runpy
import shutil
import subprocess
import sys

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


ROOT = Path(__file__).parents[1]
HERE = "{}.{}".format(*sys.version_info[:2])
SHARED = "-n 3 --dist worksteal"
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


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """
    The module, at work in a repository of its own, on a machine without uv.
    """
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    repository = tmp_path / "a repository"
    repository.mkdir()
    (repository / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(module, "ROOT", repository)
    monkeypatch.setattr(module, "CORES", 2)
    monkeypatch.setenv("PATH", str(tools(tmp_path)))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
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


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--help",), 0), (("deploy",), 2)])
def test_what_it_can_do_is_listed(dev: Any, capsys: pytest.CaptureFixture[str], arguments: Any, code: int) -> None:
    assert dev.main(*arguments) == code
    assert "tests-all" in capsys.readouterr().out


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


def test_a_shim_that_is_switched_off_gives_way_to_the_interpreter_behind_it(
    dev: Any, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "shims" / "python3.12"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    real = scripted("pyenv/versions/3.12.1/bin/python", version="3.12")
    monkeypatch.setenv("PATH", f"{shim.parent}:{tools(tmp_path)}")
    assert dev.interpreter("3.12") == real


def test_an_interpreter_of_another_version_or_none_at_all_is_not_taken(dev: Any, scripted: Any) -> None:
    scripted("pyenv/versions/3.12.1/bin/python", version="3.10")
    assert dev.interpreter("3.12") is None
    assert dev.interpreter("3.99") is None


def test_the_other_pythons_have_environments_of_their_own(dev: Any, scripted: Any, asked: Any) -> None:
    other = "3.12" if HERE != "3.12" else "3.13"
    scripted(f"pyenv/versions/{other}.0/bin/python", version=other)
    assert dev.others("-k", "x") == 0
    assert asked("-m venv") == [f"-m venv {dev.ROOT / f'.venv-{other}'}"]
    assert asked("-m pytest") == [f"-m pytest -q {SHARED} -m not slow -k x"]


def test_pythons_that_are_tried_at_once_share_the_cores(dev: Any, scripted: Any, asked: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(dev, "HERE", "3.11")
    monkeypatch.setattr(dev, "CORES", 5)
    for version in ("3.12", "3.13"):
        scripted(f"pyenv/versions/{version}.0/bin/python", version=version)
    dev.others()
    assert asked("-m pytest") == ["-m pytest -q -n 4 --dist worksteal -m not slow"] * 2


def test_only_the_pythons_that_are_named_are_tried(
    dev: Any, scripted: Any, asked: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(dev, "HERE", "3.11")
    monkeypatch.setattr(dev, "CORES", 2)
    for version in ("3.12", "3.13"):
        scripted(f"pyenv/versions/{version}.0/bin/python", version=version)
    assert dev.others("3.13", "3.11", "tests/x.py") == 0
    assert asked("-m venv") == [f"-m venv {dev.ROOT / '.venv-3.13'}"]
    assert asked("-m pytest") == [f"-m pytest -q {SHARED} -m not slow tests/x.py"]
    assert "--- Python 3.11 is that of `python3 dev.py test`" in capsys.readouterr().out


def test_a_single_core_runs_the_tests_one_after_the_other(dev: Any) -> None:
    assert dev.on(0) == dev.on(1) == ()


def test_a_plain_run_takes_all_cores_and_leaves_the_slow_to_the_gate(dev: Any, scripted: Any, asked: Any) -> None:
    scripted("a repository/.venv/bin/python")
    dev.main("test", "-k", "x")
    dev.main("slow")
    assert asked("-m pytest") == [f"-m pytest -q {SHARED} -m {marked}" for marked in ("not slow -k x", "slow")]
    gate = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "python3 dev.py slow" in gate


def test_for_the_slow_tests_only_the_files_that_hold_one_are_read(dev: Any, scripted: Any, asked: Any) -> None:
    scripted("a repository/.venv/bin/python")
    for name, text in (
        ("a/test_one.py", "@pytest.mark.slow"),
        ("test_two.py", "pytestmark = pytest.mark.slow"),
        ("test_c.py", ""),
    ):
        file = dev.ROOT / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    dev.main("slow", "-x")
    dev.main("slow", "tests/test_c.py")
    every = "tests/a/test_one.py tests/test_two.py"
    assert asked("-m pytest") == [
        f"-m pytest -q {SHARED} -m slow {more}" for more in (f"{every} -x", "tests/test_c.py")
    ]


def test_what_other_pythons_print_is_printed_and_their_worst_code_counts(
    dev: Any, scripted: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "HERE", "3.11")
    for version, end in (("3.12", "kill -9 $$"), ("3.13", "exit 1")):
        venv = scripted(f"a repository/.venv-{version}/bin/python", version=version)
        scripted(f"pyenv/versions/{version}.0/bin/python", version=version)
        venv.write_text(venv.read_text().replace("esac", f'  "-m pytest "*) echo on {version}; {end} ;;\nesac'))
    assert dev.others() == 9
    assert capsys.readouterr().out == ("--- tests on Python 3.12\non 3.12\n\n--- tests on Python 3.13\non 3.13\n\n")


def test_a_step_that_is_killed_is_no_success(dev: Any) -> None:
    assert dev.run("/bin/sh", "-c", "kill -9 $$")[0] == 9


def test_all_steps_are_run_and_the_worst_code_counts(dev: Any, scripted: Any, asked: Any, capsys: Any) -> None:
    venv = scripted("a repository/.venv/bin/python")
    venv.write_text(venv.read_text().replace("esac", '  *"ruff check"*) exit 3 ;;\nesac'))
    scripted("a repository/.venv-docs/bin/python")
    assert dev.main("ci") == 3
    done = [line for line in asked("-m") if not line.startswith("-m pip")]
    modules = ["pytest", "pytest", "ruff", "ruff", "mypy", "guardrails", "guardrails", "docs.site", "pytest"]
    assert [line.split()[1] for line in done] == [*modules, "pytest"]
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("===")]
    names = ("test", "slow", "lint", "format", "rooms", "type", "policies", "cases", "docs", "bench", "others")
    assert headings == [f"=== {name}" for name in names]


def test_the_gate_calls_exactly_the_command_of_the_readme() -> None:
    gate = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "set -euo pipefail" in gate
    assert next(line for line in gate if line.startswith("python3 ")) == "python3 dev.py test"
    assert "\npython3 dev.py test " in (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_a_half_made_environment_becomes_a_real_one(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = dev.ROOT / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to("/nowhere/python3")
    dev.make(venv, getattr(sys, "_base_executable", sys.executable), None)
    pip = subprocess.run([venv / "bin" / "python", "-m", "pip", "--version"], capture_output=True, check=False)  # noqa: S603
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


def with_hosts(dev: Any, scripted: Any, *names: str, says: str = "echo 3 passed in 1s") -> None:
    folder = dev.ROOT / "tests" / "hosts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "versions.toml").write_text(HOSTS)
    for name in names:
        (folder / f"test_{name.removesuffix('-newest')}.py").touch()
        python = scripted(f"a repository/.hosts/{name}/bin/python")
        python.write_text(python.read_text().replace("esac", f'  "-m pytest "*) {says} ;;\nesac'))


def test_hosts_that_have_tests_are_installed_once_as_they_are_pinned(
    dev: Any, scripted: Any, asked: Any, capsys: Any
) -> None:
    with_hosts(dev, scripted, "wood")
    for _ in range(2):
        assert dev.hosts() == 0
        assert "wood             3 passed in 1s (" in capsys.readouterr().out
    assert asked("-m pip install") == ["-m pip install --quiet pytest==1 wood==1 --editable .[wood]"]
    assert [line.rpartition("/")[2] for line in asked("-m pytest")] == ["test_wood.py"] * 2


def test_a_host_that_is_not_there_is_told_of(dev: Any, scripted: Any, capsys: Any) -> None:
    with_hosts(dev, scripted)
    with pytest.raises(SystemExit) as ended:
        dev.hosts("glass")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "there is no host `glass`; there are wood, stone\n"


def test_what_the_newest_versions_of_a_host_break_is_told_by_name(
    dev: Any, scripted: Any, asked: Any, capsys: Any
) -> None:
    with_hosts(dev, scripted, "stone")
    fails = "printf 'FAILED a.py::test_b - no\\n1 failed\\n'; exit 1"
    with_hosts(dev, scripted, "stone-newest", says=fails)
    assert dev.hosts("stone", "--newest") == 1
    told = capsys.readouterr().out
    assert "stone: the newest versions break a.py::test_b" in told
    assert "3 passed in 1s; newest: 1 failed" in told
    assert asked("-m pip install")[1] == "-m pip install --quiet --upgrade pytest==1 stone --editable .[stone]"
