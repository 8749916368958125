"""
What is released: the sdist and the wheel, built as the release builds them, and the wheel installed alone.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

from dataclasses import dataclass
from pathlib import Path

import pytest

from guardrails import __version__
from tests.tables import table


pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[3]
CONSUMER = (Path(__file__).parent / "consumer.txt").read_text()
PART_OF_A_BUILD = (
    *("guardrails", "policies", "examples", "pyproject.toml"),
    *("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
)
WRAPPED = """
import sys
from guardrails import Policy, PolicyError

for name in ("default", "strict", "observe"):
    assert Policy.load(name).chain, name
for name in ("agent", "shell"):
    try:
        Policy.load(name)
    except PolicyError as error:
        assert 'pip install "toolcall-guardrails[shell]"' in str(error)
    else:
        raise AssertionError(name)

def search(city: str) -> list[str]:
    return [city]

with Policy.load("default").session("s") as session:
    print(session.wrap(search)("Nara"))
"""


@dataclass(frozen=True)
class Built:
    """
    The two files of a release.
    """

    sdist: Path
    wheel: Path


def ran(*command: str | Path, cwd: Path | None = None, code: int = 0) -> str:
    bare = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd, env=bare
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def environment(folder: Path, *packages: str | Path) -> Path:
    """
    The interpreter of a new environment with *packages*; skips if they cannot be installed, as without a network.
    """
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no environment can be made here: {made.stdout}{made.stderr}")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [str(part) for part in (python, "-m", "pip", "install", "--quiet", *packages)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        assert "No matching distribution" in done.stderr or "connection" in done.stderr.lower(), done.stderr
        pytest.skip(f"{packages} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="module")
def hatch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("hatch") / "venv", "hatchling>=1.27")


@pytest.fixture(scope="module")
def built(hatch: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    tree = folder / "tree"
    tree.mkdir()
    for name in (*PART_OF_A_BUILD, ".gitignore", "tests", "benchmarks", "docs"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, tree / name)
    ran(hatch, "-m", "hatchling", "build", "-d", folder / "dist", cwd=tree)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture(scope="module")
def python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    An interpreter with the wheel and what it depends on, and with nothing else.
    """
    return environment(tmp_path_factory.mktemp("bare") / "venv", built.wheel)


def test_the_files_are_named_by_the_version(built: Built) -> None:
    assert built.wheel.name == f"toolcall_guardrails-{__version__}-py3-none-any.whl"
    assert built.sdist.name == f"toolcall_guardrails-{__version__}.tar.gz"


def test_the_wheel_holds_the_package_its_policies_and_its_types_and_nothing_else(built: Built) -> None:
    held = set(zipfile.ZipFile(built.wheel).namelist())
    assert {name.split("/")[0] for name in held} == {"guardrails", f"toolcall_guardrails-{__version__}.dist-info"}
    assert {"guardrails/py.typed", "guardrails/_policies/default.yaml", "guardrails/core/retries/cold.json"} <= held
    assert not [name for name in held if "/tests/" in name or "/test_" in name or "benchmark" in name or ".pyc" in name]
    code = {str(path.relative_to(ROOT)) for path in (ROOT / "guardrails").rglob("*.py")}
    assert code == {name for name in held if name.endswith(".py")}


def test_the_sdist_builds_the_same_wheel_again(built: Built, hatch: Path, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    assert {path.name for path in tree.iterdir()} == {*PART_OF_A_BUILD, ".gitignore", "PKG-INFO"}
    ran(hatch, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=tree)
    (again,) = (tmp_path / "again").iterdir()
    assert again.read_bytes() == built.wheel.read_bytes()


def test_the_bare_wheel_guards_a_function_and_says_what_policies_for_commands_need(
    python: Path, tmp_path: Path
) -> None:
    shipped = {path.stem for path in (ROOT / "policies").glob("*.yaml")}
    assert shipped == {"default", "strict", "observe", "agent", "shell"}
    envelope = json.loads(ran(python, "-c", WRAPPED, cwd=tmp_path))
    assert envelope["status"] == "success"
    assert envelope["results"] == ["Nara"]


def test_the_bare_wheel_has_its_command(python: Path, tmp_path: Path) -> None:
    command = python.with_name("guardrails")
    assert ran(command, "--version", cwd=tmp_path) == f"guardrails {__version__}\n"
    (tmp_path / "policy.yaml").write_text("version: 1\nextends: default\nbudget: {max_calls: 3}\n")
    assert "ok" in ran(command, "policy", "check", "policy.yaml", cwd=tmp_path)


@table("checker", ["mypy", "pyright"])
def test_a_strict_checker_finds_the_types_of_the_installed_wheel(checker: str, python: Path, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    (tmp_path / "consumer.py").write_text(CONSUMER)
    (tmp_path / "wrong.py").write_text("from guardrails import Budget\n\nBudget(max_calls='many')\n")
    if checker == "mypy":
        strict = ["--strict", f"--python-executable={python}", "--cache-dir=cache"]
    else:
        (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
        strict = [f"--pythonpath={python}"]
    ran(sys.executable, "-m", checker, *strict, "consumer.py", cwd=tmp_path)
    assert "wrong.py:3" in ran(sys.executable, "-m", checker, *strict, "wrong.py", cwd=tmp_path, code=1)
    ran(python, "consumer.py", cwd=tmp_path)
