"""
What is released: the sdist and the wheel, built as the release builds them, and the wheel installed alone.
"""

import json
import os
import re
import shutil
import sys
import tarfile
import zipfile

from importlib.util import find_spec
from pathlib import Path

import pytest

from guardrails import __version__
from tests import children
from tests.children import ROOT


CONSUMER, RIGHT, WRONG, WRAPPED = (
    Path(__file__).with_name(f"{n}.txt").read_text() for n in ("consumer", "calls_right", "calls_wrong", "wrapped")
)
PARTS = {
    *("guardrails", "policies", "examples", "pyproject.toml", ".gitignore"),
    *("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
}
"""What a build needs."""


def ran(*command: str | Path, cwd: Path, code: int = 0) -> str:
    bare = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}}
    done = children.ran(*command, cwd=cwd, env=bare, timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def environment(folder: Path, package: str | Path) -> Path:
    """
    The interpreter of a new environment with *package*; skips if that cannot be installed, as without a network.
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    for command in ([sys.executable, "-m", "venv", folder], [python, "-m", "pip", "install", "--quiet", package]):
        done = children.ran(*command, timeout=600, env=None)
        if done.returncode:
            pytest.skip(f"{package} cannot be installed here: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


@pytest.fixture(scope="module")
def hatch(folder: Path) -> Path:
    return environment(folder / "hatch", "hatchling>=1.27")


@pytest.fixture(scope="module")
def wheel(hatch: Path, folder: Path) -> Path:
    """
    Built from a tree that has more than a build needs; the sdist is beside it.
    """
    for name in (*PARTS, "tests", "benchmarks", "docs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        (folder / "tree").mkdir(exist_ok=True)
        copy(ROOT / name, folder / "tree" / name)
    ran(hatch, "-m", "hatchling", "build", "-d", folder / "dist", cwd=folder / "tree")
    return folder / "dist" / f"toolcall_guardrails-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def python(wheel: Path, folder: Path) -> Path:
    """
    An interpreter with the wheel and what it depends on, and with nothing else.
    """
    return environment(folder / "bare", wheel)


def test_the_wheel_holds_the_package_its_policies_and_its_types_and_nothing_else(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in held} == {"guardrails", f"toolcall_guardrails-{__version__}.dist-info"}
    assert {"guardrails/py.typed", "guardrails/_policies/default.yaml", "guardrails/core/retries/cold.json"} <= held
    code = {str(path.relative_to(ROOT)) for path in (ROOT / "guardrails").rglob("*.py")}
    assert code == {name for name in held if name.endswith(".py")}


def test_the_sdist_builds_the_same_wheel_again(wheel: Path, hatch: Path, tmp_path: Path) -> None:
    with tarfile.open(wheel.with_name(f"toolcall_guardrails-{__version__}.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    assert {path.name for path in tree.iterdir()} == {*PARTS, "PKG-INFO"}
    ran(hatch, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=tree)
    (again,) = (tmp_path / "again").iterdir()
    assert again.read_bytes() == wheel.read_bytes()


def test_the_bare_wheel_guards_a_function_and_has_its_command(python: Path, tmp_path: Path) -> None:
    shipped = {path.stem for path in (ROOT / "policies").glob("*.yaml")}
    assert shipped == {"default", "strict", "observe", "agent", "shell"}
    envelope = json.loads(ran(python, "-c", WRAPPED, cwd=tmp_path))
    assert (envelope["status"], envelope["results"]) == ("success", ["Nara"])
    command = python.with_name("guardrails")
    assert ran(command, "--version", cwd=tmp_path) == f"guardrails {__version__}\n"
    (tmp_path / "policy.yaml").write_text("version: 1\nextends: default\nbudget: {max_calls: 3}\n")
    assert "ok" in ran(command, "policy", "check", "policy.yaml", cwd=tmp_path)


def test_type_checkers_find_the_types_of_the_installed_wheel(python: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    (tmp_path / "calls.py").write_text(RIGHT + WRONG)
    options = ["--strict", "--implicit-reexport", "--ignore-missing-imports", f"--python-executable={python}"]
    output = ran(sys.executable, "-m", "mypy", *options, "consumer.py", "calls.py", cwd=tmp_path, code=1)
    assert "consumer.py" not in output
    lines = {int(line) for line in re.findall(r"^calls\.py:(\d+): error: ", output, re.MULTILINE)}
    last = RIGHT.count("\n")
    assert lines == {*range(last + 1, last + 1 + WRONG.count("\n"))}, (
        "calls that are right pass, and wrong ones fail each"
    )
    ran(python, "consumer.py", cwd=tmp_path)
    if find_spec("pyright") is not None:
        (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
        check = [sys.executable, "-m", "pyright", f"--pythonpath={python}"]
        ran(*check, "consumer.py", cwd=tmp_path)
        assert "calls.py" in ran(*check, "calls.py", cwd=tmp_path, code=1)
