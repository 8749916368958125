"""
The workflows can be read, ask for little, and run commands that are there.
"""

import re
import shlex
import subprocess
import sys
import tomllib

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tables import table


ROOT = Path(__file__).parents[2]
FILES = {path.stem: path for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
TARGETS = set(re.findall(r"^    ([a-z]+)  ", (ROOT / "dev.py").read_text(), re.MULTILINE))
PUBLISHES = "pypa/gh-action-pypi-publish@release/v1"
"""Its maintainers move this branch with each release, and it must know the newest form of metadata."""


def read(name: str) -> dict[Any, Any]:
    # YAML 1.1 takes `on` for true.
    loaded: dict[Any, Any] = yaml.safe_load(FILES[name].read_text())
    assert set(loaded) <= {"name", True, "permissions", "concurrency", "env", "jobs"}
    return loaded


def steps(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """
    Each step of a workflow, with its job.
    """
    for job in read(name)["jobs"].values():
        for step in job["steps"]:
            yield job, step


def commands(name: str) -> list[str]:
    """
    The commands of a workflow, with what its matrices say put in.
    """
    found = []
    for job, step in steps(name):
        matrix = job.get("strategy", {}).get("matrix", {})
        for line in str(step.get("run", "")).splitlines():
            key = re.search(r"\$\{\{ matrix\.(\w+) \}\}", line)
            found += [line.replace(key[0], value) for value in matrix[key[1]]] if key else [line]
    return found


@table("name", FILES)
def test_a_workflow_reads_only_ends_pins_its_actions_and_leaves_no_token_behind(name: str) -> None:
    assert read(name)["permissions"] == {"contents": "read"}
    for job, step in steps(name):
        assert 0 < job["timeout-minutes"] <= 60
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    for used in re.findall(r"uses: (.+)", FILES[name].read_text()):
        assert used == PUBLISHES or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used


@pytest.mark.system
@table("command", sorted({line for name in FILES for line in commands(name)}))
def test_a_command_is_there(command: str) -> None:
    words = shlex.split(command)
    if words[:2] == ["python3", "dev.py"]:
        assert words[2] in TARGETS
        for word in words[3:]:
            assert (ROOT / word).exists() or (ROOT / f"tests/hosts/test_{word}.py").exists()
    elif words[0] == "test":
        (inner,) = re.findall(r"\$\((python3 .*)\)", command)
        said = shlex.split(inner)[2]
        done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, cwd=ROOT)
        assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", done.stdout)
    else:
        (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
        assert words in (["python3", "-m", "pip", "install", backend], ["python3", "-m", "hatchling", "build"])


def test_ci_runs_every_part_of_the_gate() -> None:
    gate = (ROOT / ".ci/run").read_text()
    loop = re.search(r"for check in ([\w ]+);", gate)
    assert loop is not None
    ran = [shlex.split(line) for line in commands("ci")]
    steps = {*re.findall(r"^step (\w+)", gate, re.MULTILINE), "test", *loop[1].split()}
    assert steps == {words[2] for words in ran} < TARGETS
    hosts = re.search(r"step hosts ([\w ]+?) >", gate)
    assert hosts is not None
    assert set(hosts[1].split()) == {words[3] for words in ran if words[2] == "hosts"}


def test_only_the_step_that_publishes_has_a_right_and_it_waits_for_the_build() -> None:
    jobs = read("release")["jobs"]
    assert read("release")[True] == {"push": {"tags": ["v*"]}}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    assert "permissions" not in jobs["build"]
