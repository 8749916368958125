"""
Nothing generated runs in a place that is no jail: each start condition is proved by an attempt, and refuses if it is broken.
"""

import json
import os
import shutil
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from tests.shellfuzz import stage
from tests.shellfuzz.fuzz import fuzz
from tests.shellfuzz.jail import REFUSED
from tests.shellfuzz.jailed.conditions import NAMES
from tests.shellfuzz.stage import NoJailError, as_nobody, staged


@pytest.fixture
def jail() -> None:
    try:
        fuzz(count=0)
    except NoJailError as error:
        pytest.skip(f"the fuzzer does not start here: {error}")


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize(
    ("hole", "condition"),
    [
        ("user", "it is run by no root"),
        ("capabilities", "it has no capability"),
        ("privileges", "it gains no privileges"),
        ("repository", "the repository is not there"),
        ("home", "no home is there"),
        ("files", "the canary outside is not there"),
        ("handles", "no handle leads outside"),
        ("root", "the root is the jail's own and cannot be written"),
        ("network", "there is no network"),
        ("processes", "no process outside can be seen"),
    ],
)
def test_a_jail_with_a_hole_does_not_start(hole: str, condition: str) -> None:
    assert condition in NAMES
    with pytest.raises(NoJailError, match=condition):
        fuzz(count=5, holes=(hole,))


def test_every_condition_has_a_hole_that_breaks_it() -> None:
    marks = test_a_jail_with_a_hole_does_not_start.pytestmark  # type: ignore[attr-defined]
    cases = next(mark for mark in marks if mark.name == "parametrize").args[1]
    assert [condition for _, condition in cases] == list(NAMES)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try to start it as root")
def test_root_does_not_start_it() -> None:
    with staged(count=5, seed=0) as (command, _):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == REFUSED
    assert done.stderr == "the fuzzer does not run as root\n"
    assert done.stdout == ""


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("broken", ["file", "token", "port", "socket"])
def test_a_canary_that_nobody_could_reach_anyway_proves_nothing(broken: str) -> None:
    with staged(count=5, seed=0) as (command, plan):
        canary: dict[str, Any] = {
            "file": "/nowhere/canary",
            "token": "another",
            "port": 1,
            "socket": "nobody-listens",
        }
        plan["canary"][broken] = canary[broken]
        Path(command[-1]).write_text(json.dumps(plan), encoding="ascii")
        done = subprocess.run(command, capture_output=True, text=True, check=False, **as_nobody())
    assert done.returncode == REFUSED
    assert done.stderr.startswith("no jail can be made here: ")
    assert done.stdout == ""


@pytest.mark.usefixtures("jail")
def test_a_canary_that_was_touched_is_told() -> None:
    with pytest.raises(NoJailError, match="the canary outside was touched"), staged(count=0, seed=0) as (_, plan):
        Path(plan["canary"]["file"]).write_text("other", encoding="ascii")


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_machine_without_a_shell_is_told(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == shell else which(name))
    with pytest.raises(NoJailError, match=f"there is no {shell} here"):
        fuzz(count=1)


def test_another_system_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NoJailError, match="namespaces of Linux"):
        fuzz(count=1)


def test_only_the_language_and_what_it_needs_goes_into_the_jail() -> None:
    files = {path.relative_to(stage.REPOSITORY).as_posix() for path in stage.needed(stage.TRIED)}
    assert "guardrails/processes/tree.py" in files
    assert "guardrails/core/commands/language/reading.py" in files
    assert "guardrails/__init__.py" not in files
    assert len(files) < 50


@pytest.mark.usefixtures("jail")
def test_nothing_is_left_behind() -> None:
    with staged(count=0, seed=0) as (_, plan):
        folder = Path(plan["root"]).parent
        assert folder.is_dir()
    assert not folder.exists()
