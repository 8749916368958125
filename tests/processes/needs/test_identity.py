"""
Of git's settings a sandbox shows who commits, and nothing else.
"""

import shutil
import subprocess

from pathlib import Path

import pytest

from guardrails.processes.needs.identity import identity_file


pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return tmp_path / "HOME"


def git(*arguments: str) -> str:
    return subprocess.run(["git", "config", *arguments], check=True, capture_output=True).stdout.decode()  # noqa: S603, S607


@pytest.mark.parametrize("name", ["A Person", 'Jos\xe9 "Pepe" \\ O\'Neil; #1', "  led\tby  "])
def test_who_commits_is_shown_and_no_key(home: Path, name: str) -> None:
    for key, value in (("user.name", name), ("user.email", "a@b.c"), ("url.https://key@host/.insteadOf", "https://h/")):
        git("--global", key, value)
    file = identity_file()
    assert file is not None
    assert "key@host" not in Path(file).read_text()
    assert git("--file", file, "--get", "user.name") == f"{name}\n"
    assert identity_file() == file


def test_folders_of_other_owners_stay_safe(home: Path) -> None:
    git("--global", "--add", "safe.directory", "/mounted/app")
    git("--global", "--add", "safe.directory", "~/shared")
    git("--global", "--add", "safe.directory", "*")
    file = identity_file()
    assert file is not None
    assert git("--file", file, "--get-all", "safe.directory").splitlines() == ["/mounted/app", f"{home}/shared", "*"]


def test_without_settings_there_is_no_file() -> None:
    assert identity_file() is None
