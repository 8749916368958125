"""
What a repository's own settings would start, and what of it is left when our executor prepares a command that only reads.
"""

import os
import shutil
import subprocess

from pathlib import Path

import pytest

from guardrails.core.commands.programs import prepared


pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")
COMMANDS = ("status", "diff", "diff HEAD", "log -p", "show HEAD", "show HEAD:a", "blame a", "stash list", "ls-files -m")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """
    A repository whose settings name a program that leaves a mark wherever git would start one.
    """
    folder = tmp_path / "repository"
    folder.mkdir()
    marking = tmp_path / "marking"
    marking.write_text(f'#!/bin/sh\necho "$0 $*" >> "{tmp_path}/marks"\n[ -f "$1" ] && cat "$1"\nexit 0\n')
    marking.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        shutil.copy(marking, hooks / name)
    (folder / "a").write_text("one\n")
    (folder / ".gitattributes").write_text("a diff=marked\n")
    for words in ("init -q", "add a .gitattributes", "-c user.name=a -c user.email=a commit -q -m x"):
        run(folder, ["git", *words.split()])
    for name in ("core.fsmonitor", "diff.external", "diff.marked.textconv", "core.pager", "pager.log"):
        run(folder, ["git", "config", name, str(marking)])
    run(folder, ["git", "config", "core.hooksPath", str(hooks)])
    (folder / "a").write_text("two\n")
    return folder


def run(folder: Path, words: list[str], environment: dict[str, str] | None = None) -> None:
    given = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **(environment or {})}
    done = subprocess.run(words, cwd=folder, env=given, capture_output=True, check=False, timeout=30)  # noqa: S603
    assert done.returncode == 0, done.stderr


def test_settings_of_a_repository_start_nothing_when_a_command_was_prepared(repository: Path) -> None:
    for said in COMMANDS:
        words, environment = prepared(["git", *said.split()])
        run(repository, list(words), dict(environment))
    assert not (repository.parent / "marks").exists()


def test_the_same_settings_start_programs_otherwise(repository: Path) -> None:
    run(repository, ["git", "diff"])
    assert (repository.parent / "marks").exists()
