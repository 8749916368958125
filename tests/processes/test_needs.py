"""
What of a home programs are shown, of git's settings too, and that nothing else of it is.
"""

import os
import shutil
import subprocess

from pathlib import Path
from typing import Any

import pytest

from guardrails.processes.sandbox import LISTED, OF_NETWORK, confinement_for, harmless, listed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return tmp_path / "home"


def shown(home: Path, *path: Path | str, **more: Any) -> list[str]:
    environment = {"PATH": os.pathsep.join(map(str, path)), **more.pop("environment", {})}
    found = confinement_for(str(home.parent / "workspace"), environment=environment, **more).readable
    return sorted(os.path.relpath(one, home) for one in found if one.startswith(str(home.parent)))


def folders(home: Path, *names: str) -> None:
    for name in names:
        (home / name).mkdir(parents=True)


def test_of_a_home_only_programs_and_what_they_consist_of_are_shown(home: Path) -> None:
    folders(home, ".ssh", ".config/git", "projects", "lib", "bin", "conda/bin", "conda/lib", "go/bin", "go/src")
    folders(home, ".cargo/bin", ".cargo/lib", ".local/bin", ".local/lib", ".local/share/keyrings", ".rustup/toolchains")
    assert shown(home, "/usr/bin", "", "relative") == [".local/lib", ".rustup"]
    path = [home / name for name in ("bin", "conda/bin", "go/bin", "gone/bin", ".cargo/bin", ".local/bin", ".")]
    assert shown(home, *path) == [".cargo/bin", ".local/bin", ".local/lib", ".rustup", "bin", "conda", "go/bin"]


def test_what_variables_name_is_shown_unless_it_holds_the_home(home: Path) -> None:
    folders(home, "java/lib", ".ssh")
    environment = {"JAVA_HOME": f"{home}/java", "HOME": str(home), "PYTHONPATH": f"relative:{home}/gone"}
    assert shown(home, environment=environment) == ["java"]


def git(folder: Path, *arguments: str) -> None:
    named = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b", *arguments]
    subprocess.run(named, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
@pytest.mark.system
def test_who_commits_is_shown_and_no_key(home: Path) -> None:
    assert "GIT_CONFIG_COUNT" not in confinement_for("/workspace").environment
    told = {"user.name": 'Jos\xe9 "Pepe"; #1', "url.https://key@host/.insteadOf": "https://h/", "safe.directory": "~/x"}
    for key, value in told.items():
        git(home, "config", "--global", key, value)
    environment = confinement_for("/workspace").environment
    found = {environment[f"GIT_CONFIG_KEY_{n}"]: environment[f"GIT_CONFIG_VALUE_{n}"] for n in range(2)}
    assert found == {"user.name": 'Jos\xe9 "Pepe"; #1', "safe.directory": f"{home}/x"}
    assert environment["GIT_CONFIG_COUNT"] == "2"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
@pytest.mark.system
def test_the_repository_around_a_workspace_is_shown_and_none_that_it_only_claims(tmp_path: Path) -> None:
    def kept(workspace: Path) -> list[str]:
        return [one for one in confinement_for(str(workspace), environment={}).readable if one.endswith(".git")]

    main, linked, liar = tmp_path / "main", tmp_path / "linked", tmp_path / "liar"
    folders(tmp_path, "main/part", "liar", "home/part", "home/.git")
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    assert kept(main) == []
    assert kept(main / "part") == kept(linked) == [str(main / ".git")]
    assert kept(tmp_path / "home" / "part") == []
    for text in (f"gitdir: {main}/.git/worktrees/linked", f"gitdir: {main}/.git", ""):
        (liar / ".git").write_text(text)
        assert kept(liar) == []


def test_harmless_variables_are_those_not_named_like_secrets() -> None:
    given = dict.fromkeys(["PATH", "HOME", "GITHUB_TOKEN", "db_password", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY"], "x")
    assert sorted(harmless(given)) == ["HOME", "PATH"]


def test_a_confined_process_sees_the_names_of_a_list_and_of_the_network_only_if_it_may_use_it() -> None:
    given = dict.fromkeys(
        ["PATH", "LC_ALL", "VIRTUAL_ENV", "OPENAI_API_KEY", "AWS_PROFILE", "MY_PLAIN", "LC_MY_KEY", "http_proxy"], "x"
    )
    assert sorted(listed(given)) == ["LC_ALL", "PATH", "VIRTUAL_ENV"]
    assert sorted(listed(given, network=True)) == ["LC_ALL", "PATH", "VIRTUAL_ENV", "http_proxy"]
    assert listed({"HTTPS_PROXY": "http://me:secret@proxy:3128"}, network=True) == {}


def test_no_name_of_the_lists_is_that_of_a_secret_but_for_addresses() -> None:
    assert set(harmless(dict.fromkeys(LISTED, ""))) == LISTED
    assert {name for name in OF_NETWORK if not name.endswith("_URL")} <= set(harmless(dict.fromkeys(OF_NETWORK, "")))
