"""
What is public stands in a list, the version in one place, and the workflows ask for little and run what the gate runs.
"""

import re
import shlex
import tomllib

from collections.abc import Iterator
from typing import Any

import yaml

from guardrails import __version__
from tests.tables import table

from .surface import LIST, ROOT, surface


WRITE = "run `python -m tests.release.surface`, look at the difference, and tell users of it: docs/operate.md says how"
FILES = {path.stem: path for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
PUBLISHES = "pypa/gh-action-pypi-publish@release/v1"
"""Its maintainers move this branch with each release, and it must know the newest form of metadata."""


def test_what_is_public_is_what_the_list_says() -> None:
    listed, found = LIST.read_text().splitlines(), surface()
    assert [line for line in listed if line not in set(found)] == [], f"gone or changed, a break for users: {WRITE}"
    assert [line for line in found if line not in set(listed)] == [], f"new: {WRITE}"
    assert found == listed


def test_the_build_reads_the_version_where_the_library_says_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "guardrails/core/values/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", __version__)


def read(name: str) -> dict[Any, Any]:
    # YAML 1.1 takes `on` for true.
    loaded: dict[Any, Any] = yaml.safe_load(FILES[name].read_text())
    assert set(loaded) <= {"name", True, "permissions", "concurrency", "env", "jobs"}
    return loaded


def commands(name: str) -> Iterator[list[str]]:
    """
    The words of each command of a workflow, with what its matrices say put in.
    """
    for job in read(name)["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for line in "\n".join(step["run"] for step in job["steps"] if "run" in step).splitlines():
            key = re.search(r"\$\{\{ matrix\.(\w+) \}\}", line)
            for value in matrix[key[1]] if key else [""]:
                yield shlex.split(line.replace(key[0], value) if key else line)


@table("name", FILES)
def test_a_workflow_reads_only_ends_pins_its_actions_and_leaves_no_token_behind(name: str) -> None:
    assert read(name)["permissions"] == {"contents": "read"}
    for job in read(name)["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 60
        out = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in out)
    for used in re.findall(r"uses: (.+)", FILES[name].read_text()):
        assert used == PUBLISHES or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used


def test_ci_runs_every_part_of_the_gate() -> None:
    gate = (ROOT / ".ci/run").read_text()
    loops = re.findall(r"for check in ([\w ]+);", gate)
    steps = {*re.findall(r"^step (\w+)", gate, re.MULTILINE), "test", *" ".join(loops).split()}
    assert steps == {words[2] for words in commands("ci")}
    hosts = " ".join(re.findall(r"step hosts ([\w ]+?) >", gate)).split()
    assert set(hosts) == {words[3] for words in commands("ci") if words[2] == "hosts"}
    assert all((ROOT / f"tests/hosts/test_{name}.py").exists() for name in hosts)


def test_only_the_step_that_publishes_has_a_right_and_it_waits_for_the_build() -> None:
    jobs = read("release")["jobs"]
    assert read("release")[True] == {"push": {"tags": ["v*"]}}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    assert "permissions" not in jobs["build"]
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert ["python3", "-m", "pip", "install", backend] in [*commands("release")]
