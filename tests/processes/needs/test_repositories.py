"""
Of a repository that lies around a workspace what git keeps is found, and nothing that a workspace only claims.
"""

import shutil
import subprocess

from pathlib import Path

import pytest

from guardrails.processes.needs.repositories import git_folder


def git(folder: Path, *arguments: str) -> None:
    named = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b", "-c", "protocol.file.allow=always"]
    subprocess.run([*named, *arguments], check=True, capture_output=True)  # noqa: S603


def found(workspace: Path, home: str = "/nowhere") -> str | None:
    return git_folder(str(workspace), home)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_what_git_keeps_of_a_part_a_linked_worktree_and_a_submodule_is_found(tmp_path: Path) -> None:
    main, linked, other = tmp_path / "main", tmp_path / "linked", tmp_path / "other"
    (main / "part").mkdir(parents=True)
    other.mkdir()
    for folder in (main, other):
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    git(main, "submodule", "add", "-q", str(other), "inner")
    assert found(main) is None
    assert found(main / "part") == found(linked) == str(main / ".git")
    assert found(main / "inner") == str(main / ".git" / "modules" / "inner")
    # One that holds all of a home holds more than a workspace is to see.
    assert found(main / "part", home=str(main)) is None
    assert found(tmp_path / "gone") is None


def test_what_a_workspace_only_claims_is_not_believed(tmp_path: Path) -> None:
    secrets, workspace = tmp_path / "secrets" / "worktrees" / "a", tmp_path / "workspace"
    fake = workspace / "fake" / "worktrees" / "a"
    for folder in (secrets, fake):
        folder.mkdir(parents=True)
        (folder / "HEAD").write_text("x")
    (fake / "gitdir").write_text(str(workspace / ".git"))
    (fake / "commondir").write_text(str(tmp_path / "secrets"))
    (fake / "config").write_text(f"worktree = {workspace}")
    for text in (f"gitdir: {secrets}", "gitdir: ../secrets/worktrees/a", f"gitdir: {fake}", "gitdir: fake", "", "x: /"):
        (workspace / ".git").write_text(text)
        assert found(workspace) is None
    (workspace / ".git").unlink()
    (workspace / ".git").symlink_to(workspace)
    assert found(workspace) is None
