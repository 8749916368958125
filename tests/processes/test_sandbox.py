"""
What bubblewrap keeps a program from, what it leaves to honest work, what of a home is shown, and what is said where it
does not work.

The programs that try to get out are harmless wherever they run: they touch canaries in folders of the test only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrails.agent.builtin.shell import Ended, run
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.sandbox import Sandbox, bubblewrap, harmless, listed
from tests.tables import table


pytestmark = pytest.mark.system
TRY = Path(__file__).with_name("try.py.txt").read_text()


def folders(base: Path, names: str) -> None:
    for name in names.split():
        (base / name).mkdir(parents=True)


class Place:
    """
    A workspace in a home with a key, and a folder outside of both.
    """

    def __init__(self, base: Path) -> None:
        self.home, self.workspace, self.outside = base / "home", base / "home" / "project", base / "outside"
        self.key, self.secret = self.home / ".ssh" / "id", self.outside / "secret"
        folders(base, "home/project home/.ssh outside")
        for file in (self.key, self.secret):
            file.write_text("planted")

    def start(self, *words: str, timeout: float = 30, shown: Path | None = None, **rights: bool) -> Ended:
        environment = {"PATH": os.defpath, **({} if shown is None else {"SHOWN": str(shown)})}
        confined = Sandbox(str(self.workspace), environment=environment, **rights)
        return run([(";", [words])], confined.started, str(self.workspace), timeout=timeout, limit=1 << 16)

    def lines(self, command: str, **rights: Any) -> list[str]:
        """
        What *command* says in the sandbox.
        """
        return self.start("bash", "-c", command, **rights).output.splitlines()

    def errors(self, *deeds: Sequence[object], **rights: Any) -> Any:
        """
        How each of *deeds*, `open` and functions of `os`, fails in the sandbox; None: it does not.
        """
        ended = self.start("/usr/bin/env", "python3", "-I", "-S", "-c", TRY, json.dumps(deeds), **rights)
        assert ended.exit_code == 0, ended
        return [line or None for line in ended.output.splitlines()]


@pytest.fixture
def place(works: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setattr(os, "defpath", f"/usr/bin:/bin:{Path(sys.executable).resolve().parent}")
    return made


def test_a_command_works_in_the_workspace_and_its_home_goes_with_it(place: Place) -> None:
    (place.home / ".cargo" / "bin").mkdir(parents=True)
    assert place.lines("pwd; echo x > made; tr x y < made; touch ~/own $TMPDIR/own") == [str(place.workspace), "y"]
    assert (place.workspace / "made").read_text() == "x\n"
    told = place.lines("echo $HOME; ls -A ~; ls $TMPDIR | grep own", shown=place.home / ".cargo" / "bin")
    assert told == [str(place.home), ".cargo", "project"]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        place.workspace = Path(made)
        assert place.lines("touch made /tmp/a /var/tmp/a; ls") == ["made"]


@table("is_shown", [False, True])
def test_d6_nothing_outside_is_written(place: Place, is_shown: bool) -> None:
    if not is_shown:
        (place.workspace / "link").symlink_to(place.outside)
    (place.workspace / "own").touch()
    outside, secret = str(place.outside), str(place.secret)
    errors = place.errors(
        *(["open", f"{outside}/new", "w"], ["open", secret, "a"], ["truncate", secret, 0], ["mkdir", f"{outside}/x"]),
        *(["rename", secret, "taken"], ["rename", "own", f"{outside}/own"], ["unlink", secret], ["link", secret, "x"]),
        *(["open", "link/new", "w"], ["open", "/new", "w"], ["open", "/etc/passwd", "a"]),
        ["open", "/proc/sys/vm/drop_caches", "w"],
        shown=place.outside if is_shown else None,
    )
    assert None not in errors
    assert (sorted(path.name for path in place.outside.iterdir()), place.secret.read_text()) == (["secret"], "planted")


def test_no_key_of_a_home_no_process_and_no_variable_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "planted")
    (place.workspace / "linked").symlink_to(place.key)
    paths = [str(place.key), str(place.secret), "/etc/shadow", "linked", "../.ssh/id"]
    paths += [f"/proc/{os.getpid()}/environ", f"/proc/{os.getppid()}/root{place.secret}"]
    assert None not in place.errors(*(["open", path] for path in paths))
    assert place.lines("ls -A ~") == ["project"]
    variables = {line.partition("=")[0] for line in place.lines("env")}
    assert variables - {"LC_CTYPE", "TAR_OPTIONS", "PWD", "SHLVL", "_", "OLDPWD"} == {"HOME", "PATH", "TMPDIR"}
    # What a variable names is shown, a link too, and of a file nothing beside it.
    (place.home / "link").symlink_to(place.outside)
    (place.outside / "key").write_text("planted")
    assert place.lines(f"ls ~/link {place.outside}", shown=place.home / "link").count("secret") == 2
    assert place.lines(f"ls {place.outside}", shown=place.secret) == ["secret"]


def test_what_runs_outside_unasked_stays_as_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    git, own = place.workspace / ".git", place.workspace / ".venv"
    folders(place.workspace, ".git .venv")
    (git / "config").write_text("[core]\n")
    (place.workspace / "file").touch()
    monkeypatch.setattr(sys, "prefix", str(own))
    errors = place.errors(
        *(["open", ".git/config", "a"], ["replace", "file", ".git/config"], ["rename", ".git", "old"]),
        *(["open", ".git/hooks/post-commit", "w"], ["rename", ".git/hooks", ".git/old"], ["open", ".venv/x", "w"]),
        *(["rename", ".venv", "x"], ["open", ".git/object", "w"]),
    )
    assert [error is None for error in errors] == [False] * 7 + [True]


def test_no_program_of_the_workspace_runs_outside(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join([str(place.workspace), *path]))
    for name in ("bwrap", "git"):
        (place.workspace / name).write_text(f"#!/bin/sh\ntouch {place.outside}/$$\n")
        (place.workspace / name).chmod(0o755)
    Sandbox(str(place.workspace)).started(["true"], str(place.workspace))
    assert place.lines("echo x") == ["x"]
    assert [path.name for path in place.outside.iterdir()] == ["secret"]


def test_d12_all_of_it_ends_with_it_or_at_its_time_limit(place: Place) -> None:
    mark, over = f"300.{os.getpid()}", time.monotonic() + 120
    for ending, code in (("exit 0", 0), ("sleep 60", None)):
        ended = place.start("bash", "-c", f"setsid sleep {mark} & trap '' TERM; echo before; {ending}", timeout=5)
        assert (ended.output, ended.exit_code) == ("before\n", code)
    while subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < over
        time.sleep(0.02)


def test_a_home_or_a_part_of_the_system_is_no_workspace(place: Place) -> None:
    (place.outside / "link").symlink_to(place.home)
    paths = "/usr /etc /home/../usr /dev home / . outside/link /no/such /etc/passwd"
    for path in paths.split():
        why = "does not exist" if path in ("/no/such", "/etc/passwd") else "holds"
        with pytest.raises(SandboxUnavailable, match=why) as caught:
            Sandbox(str(place.home.parent / path), environment={}).started(["true"], path)
        assert caught.value.code == "sandbox.unavailable"


def test_where_it_does_not_work_what_blocked_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blocked() -> str:
        bubblewrap.cache_clear()
        with pytest.raises(SandboxUnavailable) as caught:
            bubblewrap()
        return str(caught.value)

    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed (package bubblewrap); `--sandbox none` runs programs without one, in a container" in blocked()
    (tmp_path / "bwrap").write_text("#!/bin/sh\n{ echo no; echo oh; } >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    assert "it cannot run a command: oh; docs/security.md tells what may forbid it" in blocked()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "needs Linux" in blocked()


# What of a home programs are shown, and of git's settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return tmp_path / "home"


def test_of_a_home_only_programs_and_what_they_consist_of_are_shown(home: Path) -> None:
    def shown(**environment: str) -> list[str]:
        found = Sandbox(str(home.parent / "workspace"), environment=environment).readable
        return sorted(os.path.relpath(one, home) for one in found if one.startswith(str(home.parent)))

    folders(home, ".ssh .config/git projects lib bin conda/bin conda/lib go/bin go/src java .cargo/bin .cargo/lib")
    folders(home, ".local/bin .local/lib .local/share/keyrings .rustup/toolchains")
    assert shown(PATH="/usr/bin::relative") == [".local/lib", ".rustup"]
    path = [f"{home}/{name}" for name in ("bin", "conda/bin", "go/bin", "gone/bin", ".cargo/bin", ".local/bin", ".")]
    named = {"JAVA_HOME": f"{home}/java", "HOME": str(home), "PYTHONPATH": f"relative:{home}/gone"}
    both = [".cargo/bin", ".local/bin", ".local/lib", ".rustup", "bin", "conda", "go/bin", "java"]
    assert shown(PATH=os.pathsep.join(path), **named) == both


def git(folder: Path, *arguments: str) -> None:
    named = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b", *arguments]
    subprocess.run(named, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_who_commits_is_shown_and_no_key(home: Path) -> None:
    assert "GIT_CONFIG_COUNT" not in Sandbox("/workspace").environment
    told = {"user.name": 'Jos\xe9 "Pepe"; #1', "url.https://key@host/.insteadOf": "https://h/", "safe.directory": "~/x"}
    for key, value in told.items():
        git(home, "config", "--global", key, value)
    # A folder that git may use is not shown for that.
    folders(home, "x")
    confined = Sandbox("/workspace")
    environment = confined.environment
    found = {environment[f"GIT_CONFIG_KEY_{n}"]: environment[f"GIT_CONFIG_VALUE_{n}"] for n in range(2)}
    assert found == {"user.name": 'Jos\xe9 "Pepe"; #1', "safe.directory": f"{home}/x"}
    assert (environment["GIT_CONFIG_COUNT"], f"{home}/x" in confined.readable) == ("2", False)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_the_repository_around_a_workspace_is_shown_and_none_that_it_only_claims(home: Path, tmp_path: Path) -> None:
    def kept(workspace: Path) -> list[str]:
        return [one for one in Sandbox(str(workspace), environment={}).readable if one.endswith(".git")]

    main, linked, liar = tmp_path / "main", tmp_path / "linked", tmp_path / "liar"
    folders(tmp_path, "main/part liar home/part home/.git")
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    assert kept(main) == kept(home / "part") == []
    assert kept(main / "part") == kept(linked) == [str(main / ".git")]
    for text in (f"gitdir: {main}/.git/worktrees/linked", f"gitdir: {main}/.git", ""):
        (liar / ".git").write_text(text)
        assert kept(liar) == []


def test_variables_that_may_hold_a_secret_are_told_to_nobody() -> None:
    secrets = dict.fromkeys(["GITHUB_TOKEN", "db_password", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "LC_MY_KEY"], "x")
    plain = dict.fromkeys(["PATH", "LC_ALL", "VIRTUAL_ENV", "http_proxy"], "x")
    assert harmless({**secrets, **plain, "MY_PLAIN": "x"}) == {**plain, "MY_PLAIN": "x"}
    assert listed({**secrets, **plain, "MY_PLAIN": "x", "HTTPS_PROXY": "http://me:secret@proxy:3128"}) == plain
