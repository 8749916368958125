"""
What bubblewrap keeps a program from, what it leaves to honest work, and what is said where it does not work.

The programs that try to get out are harmless wherever they run: they touch canaries in folders of the test only.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

from pathlib import Path
from typing import Any

import pytest

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes import sandbox
from guardrails.processes.run import Ended, run
from guardrails.processes.sandbox import Confinement, bubblewrap, started
from tests.tables import table


pytestmark = pytest.mark.system
PREFACE = """
import json, os, socket, sys
told = json.loads(sys.argv[1])
def failed(deed, *given):
    try:
        deed(*given)
    except OSError as error:
        return type(error).__name__
def say(value):
    print(json.dumps(value))
"""


@pytest.fixture
def works() -> None:
    try:
        bubblewrap()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


class Place:
    """
    A workspace in a home with a key, and a folder outside of both.
    """

    def __init__(self, base: Path) -> None:
        self.home, self.workspace, self.outside = base / "home", base / "home" / "project", base / "outside"
        for folder in (self.workspace, self.outside, self.home / ".ssh"):
            folder.mkdir(parents=True)
        for file in (self.key, self.secret):
            file.write_text("planted")

    @property
    def key(self) -> Path:
        return self.home / ".ssh" / "id"

    @property
    def secret(self) -> Path:
        return self.outside / "secret"

    def start(self, words: list[str], timeout: float = 30, **rights: Any) -> Ended:
        confinement = Confinement(workspace=str(self.workspace), **{"environment": {"PATH": os.defpath}, **rights})

        def begin(given: Any, folder: str) -> Any:
            return started(confinement, given, folder)

        return run([(";", [words])], begin, str(self.workspace), timeout=timeout, limit=1 << 16)

    def said(self, code: str, told: Any = None, **rights: Any) -> Any:
        """
        What the Python *code* says in the sandbox; it has to end well.
        """
        ended = self.start(["/usr/bin/env", "python3", "-I", "-S", "-c", PREFACE + code, json.dumps(told)], **rights)
        assert ended.exit_code == 0, ended
        return json.loads(ended.output)


@pytest.fixture
def place(works: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    python = os.path.dirname(os.path.realpath(sys.executable))  # noqa: PTH120
    monkeypatch.setattr(os, "defpath", f"/usr/bin:/bin:{python}")
    return made


def test_a_command_works_in_the_workspace(place: Place) -> None:
    ended = place.start(["sh", "-c", "pwd; echo x > made; tr x y < made; touch $HOME/own $TMPDIR/own; exit 3"])
    assert (ended.output, ended.exit_code) == (f"{place.workspace}\ny\n", 3)
    assert (place.workspace / "made").read_text() == "x\n"
    assert place.start(["sh", "-c", "ls $HOME $TMPDIR"]).output.count("own") == 0


@pytest.mark.parametrize("is_shown", [False, True], ids=["hidden", "shown"])
def test_d6_nothing_outside_is_written(place: Place, is_shown: bool) -> None:
    (place.workspace / "link").symlink_to(place.outside)
    said = place.said(
        """
secret = told + "/secret"
open("own", "w").close()
say([
    failed(open, told + "/new", "w"), failed(open, secret, "a"), failed(os.truncate, secret, 0),
    failed(os.mkdir, told + "/folder"), failed(os.rename, secret, "taken"), failed(os.rename, "own", told + "/own"),
    failed(os.unlink, secret), failed(os.link, secret, "linked"), failed(open, "link/new", "w"),
    failed(open, "/new", "w"), failed(open, "/etc/passwd", "a"), failed(open, "/proc/sys/vm/drop_caches", "w"),
])
""",
        told=str(place.outside),
        readable=(str(place.outside),) if is_shown else (),
    )
    assert None not in said
    assert (sorted(path.name for path in place.outside.iterdir()), place.secret.read_text()) == (["secret"], "planted")


def test_no_key_of_a_home_and_no_process_is_seen(place: Place) -> None:
    (place.workspace / "linked").symlink_to(place.key)
    paths = [str(place.key), str(place.secret), "/etc/shadow", "linked", f"{place.workspace}/../.ssh/id"]
    paths += [f"/proc/{os.getpid()}/environ", f"/proc/{os.getppid()}/root{place.secret}"]
    assert None not in place.said("say([failed(open, path) for path in told])", told=paths)
    assert place.said("say(os.listdir(told))", told=str(place.home)) == ["project"]
    assert place.said("say(open(told).read())", str(place.secret), readable=(str(place.outside),)) == "planted"


def test_a_readable_link_is_seen_by_either_name(place: Place) -> None:
    (place.home / "link").symlink_to(place.outside)
    names = [f"{place.home}/link/secret", str(place.secret)]
    said = place.said("say([failed(open, path) for path in told])", names, readable=(f"{place.home}/link",))
    assert said == [None, None]


def test_only_an_allowed_network_is_reached(place: Place) -> None:
    code = "say(failed(socket.create_connection, ('127.0.0.1', told), 2))"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert place.said(code, port) is not None
        assert place.said(code, port, network=True) is None


def test_the_environment_is_the_listed_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "planted")
    said = place.said("say(dict(os.environ))")
    assert said.keys() - {"LC_CTYPE", "TAR_OPTIONS", "PWD"} == {"HOME", "PATH", "TMPDIR"}


def test_a_workspace_that_is_only_read_is_not_written(place: Place) -> None:
    (place.workspace / "file").write_text("x")
    said = place.said("say([failed(open, 'file'), failed(open, 'made', 'w')])", read_only=True)
    assert said == [None, "OSError"]


def test_hooks_and_settings_of_git_stay_as_they_are(place: Place) -> None:
    git = place.workspace / ".git"
    git.mkdir()
    (git / "config").write_text("[core]\n")
    said = place.said(
        """
open("file", "w").close()
say([
    failed(open, ".git/config", "a"), failed(os.replace, "file", ".git/config"), failed(os.rename, ".git", "old"),
    failed(open, ".git/hooks/post-commit", "w"), failed(os.rename, ".git/hooks", ".git/old"),
    failed(open, ".git/object", "w"),
])
"""
    )
    assert None not in said[:-1]
    assert said[-1] is None


def test_git_works(place: Place) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    commit = "git -c user.name=a -c user.email=a@b commit -q"
    ended = place.start(["sh", "-c", f"git init -q . && {commit} --allow-empty -m one && git log --oneline"])
    assert ended.exit_code == 0, ended
    ended = place.start(["sh", "-c", f"echo x > f && git add f && {commit} -m two && git status --short"])
    assert (ended.exit_code, ended.output) == (0, "")


def test_the_python_of_the_library_stays_as_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    own = place.workspace / ".venv"
    own.mkdir()
    monkeypatch.setattr(sys, "prefix", str(own))
    assert place.said("say([failed(open, '.venv/x', 'w'), failed(os.rename, '.venv', 'x')])").count(None) == 0


@table("ending", ["exit 0", "sleep 60"])
def test_d12_all_of_it_ends_with_it_or_at_its_time_limit(place: Place, ending: str) -> None:
    mark, began = f"300.{os.getpid()}", time.monotonic()
    ended = place.start(["bash", "-c", f"setsid sleep {mark} & trap '' TERM; echo before; {ending}"], timeout=2)
    assert (ended.output, ended.exit_code) == ("before\n", 0 if ending == "exit 0" else None)
    over = began + 15
    while subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < over
        time.sleep(0.02)


@table("path", ["/", "/usr", "/etc", "/tmp", "/home/../usr", "/proc/self", "/dev", "/no/such", "/etc/passwd"])
def test_a_part_of_the_system_is_no_workspace(works: None, path: str) -> None:
    with pytest.raises(SandboxUnavailable, match=r"name (a|another)|does not exist"):
        started(Confinement(workspace=path, environment={}), ["true"], path)


def test_a_home_is_no_workspace(place: Place) -> None:
    (place.outside / "link").symlink_to(place.home)
    for path in map(str, (place.home, place.home.parent, place.outside / "link")):
        with pytest.raises(SandboxUnavailable, match="holds the home") as caught:
            started(Confinement(workspace=path, environment={}), ["true"], path)
        assert caught.value.code == "sandbox.unavailable"


def test_where_it_does_not_work_what_blocked_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"not installed \(package bubblewrap\); `--sandbox none`"):
        bubblewrap()
    for printed, expected in {"setting up uid map: x": "what may forbid it", "oh": "cannot run a command: oh;"}.items():
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho '{printed}' >&2; exit 1\n")
        (tmp_path / "bwrap").chmod(0o755)
        sandbox._tried.cache_clear()
        with pytest.raises(SandboxUnavailable, match=expected):
            bubblewrap()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="this is macOS"):
        bubblewrap()
