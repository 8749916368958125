"""
Which folders a sandbox takes for a workspace, and what in them stays as it is.
"""

import json
import os
import shutil
import sys

from pathlib import Path

import pytest

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.run import run_started
from guardrails.processes.sandbox import Backend, Confinement, Limits
from guardrails.processes.sandbox.folders import kept_in, own_folders

from .conftest import Place


OF_BWRAP = pytest.mark.parametrize("backend", ["bwrap"], indirect=True)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/usr",
        "/usr/",
        "/etc",
        "/tmp",  # noqa: S108
        "/home/../usr",
        "/proc/self",
        "/sys/kernel",
        "/dev",
        "/no/such/folder",
        "/etc/passwd",
    ],
)
def test_a_part_of_the_system_is_no_workspace(backend: Backend, path: str) -> None:
    with pytest.raises(SandboxUnavailable, match=r"name (a|another)|does not exist"):
        backend.started(Confinement(workspace=path, environment={}), ["true"])


def test_a_home_is_no_workspace(place: Place) -> None:
    link = place.outside / "link"
    link.symlink_to(place.home)
    for path in (place.home, place.home.parent, link):
        with pytest.raises(SandboxUnavailable, match="holds the home") as caught:
            place.backend.started(Confinement(workspace=str(path), environment={}), ["true"])
        assert caught.value.code == "sandbox.unavailable"


@OF_BWRAP
def test_of_a_home_only_the_workspace_is_there(place: Place) -> None:
    said = place.said("say(sorted(os.listdir(told)))", told=str(place.home))
    assert said == ["project"]


def test_all_files_are_left_if_that_is_asked(place: Place) -> None:
    key = place.home / ".ssh" / "id"
    said = place.said("say(open(told).read())", told=str(key), files="all")
    assert said == "planted"
    home = place.backend.started(
        Confinement(
            workspace=str(place.workspace), environment={"HOME": str(place.home), "PATH": os.defpath}, files="all"
        ),
        ["sh", "-c", "echo $HOME"],
    )
    assert str(place.home) in json.dumps(dict(home.environment))


GIT = """
out = {
    "config": failed(open, ".git/config", "a"),
    "hook": failed(open, ".git/hooks/post-commit", "w"),
    "hooks": failed(os.rename, ".git/hooks", ".git/old"),
    "replaced": failed(os.replace, "file", ".git/config"),
    "moved": failed(os.rename, ".git", "old"),
    "object": failed(open, ".git/object", "w"),
} if not open("file", "w").close() else None
say(out)
"""


@OF_BWRAP
def test_hooks_and_settings_of_git_stay_as_they_are(place: Place) -> None:
    git = place.workspace / ".git"
    git.mkdir()
    (git / "config").write_text("[core]\n")
    said = place.said(GIT)
    assert said.pop("object") is None
    assert None not in said.values(), said
    assert (git / "config").read_text() == "[core]\n"
    assert list((git / "hooks").iterdir()) == []


@OF_BWRAP
@pytest.mark.parametrize("name", [".git", ".git/config", ".git/hooks"])
def test_a_link_in_place_of_what_stays_shows_nothing(place: Place, name: str) -> None:
    path = place.workspace / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(place.home / ".ssh")
    assert place.said("say([failed(os.listdir, told), failed(open, told + '/id')])", told=name) == [
        "ENOENT",
        "ENOENT",
    ]


@OF_BWRAP
def test_what_was_exchanged_while_it_started_is_seen(place: Place) -> None:
    git = place.workspace / ".git"
    (git / "hooks").mkdir(parents=True)
    started = place.backend.started(place.confinement(), ["cat", ".git/hooks/id"])
    (git / "hooks").rmdir()
    (git / "hooks").symlink_to(place.home / ".ssh")
    ended = run_started(started, timeout=10, limit=1_000)
    assert ended.exit_code != 0
    assert "planted" not in ended.output


@OF_BWRAP
def test_git_works_in_it(place: Place) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    commands = (
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --oneline"
    )
    assert place.start(["sh", "-c", commands]).exit_code == 0
    again = "echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -q -m two && git status --short"
    ended = place.start(["sh", "-c", again])
    assert (ended.exit_code, ended.output) == (0, "")


@OF_BWRAP
def test_the_python_of_the_library_stays_as_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    own = place.workspace / "tools" / ".venv"
    own.mkdir(parents=True)
    (own / "module.py").write_text("ours")
    monkeypatch.setattr(sys, "prefix", str(own))
    code = """
say([
    failed(open, "tools/.venv/module.py", "w"),
    failed(os.rename, "tools/.venv", "tools/other"),
    failed(os.rename, "tools", "others"),
    failed(open, "tools/free", "w"),
])
"""
    said = place.said(code)
    assert None not in said[:3]
    assert said[3] is None
    assert (own / "module.py").read_text() == "ours"


@pytest.mark.parametrize("backend", ["landlock"], indirect=True)
def test_landlock_does_not_take_a_workspace_that_the_library_runs_from(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(place.workspace / ".venv"))
    with pytest.raises(SandboxUnavailable, match="install it outside"):
        place.backend.started(place.confinement(), ["true"])


def test_what_is_kept_in_what_is_kept_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "a"))
    monkeypatch.setattr(sys, "base_prefix", str(inner))
    assert str(inner) not in own_folders()
    assert kept_in([str(tmp_path)]) == {str(tmp_path / "a"): True}


@OF_BWRAP
def test_a_workspace_below_a_folder_of_the_system_works(place: Place) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder there")
    folder = Path("/usr/src/sandbox-test")
    folder.mkdir(exist_ok=True)
    try:
        place.workspace = folder
        assert place.said("say(failed(open, 'made', 'w'))", limits=Limits()) is None
        assert (folder / "made").exists()
    finally:
        shutil.rmtree(folder)
