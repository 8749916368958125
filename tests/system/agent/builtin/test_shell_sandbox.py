"""
The shell tool in a sandbox: honest work goes on, all of a command ends, and what cannot be confined is refused.
"""

import os
import shutil
import sys
import time

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope
from guardrails.agent.builtin import Root, Shell, builtin_tools
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.sandbox import bubblewrap


@pytest.fixture
def sandbox() -> Any:
    try:
        bubblewrap()
        return "bwrap"
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def run(folder: Path, sandbox: Any, command: str, timeout: int | None = None, **settings: Any) -> Envelope:
    said = Shell(Root(folder), sandbox=sandbox, **settings).tools["exec_shell"](command, timeout)
    assert isinstance(said, Envelope)
    return said


WORK = {
    "git": (
        "git init -q . && git config user.name a && git config user.email b && echo x > f && git add f && git commit -qm one"
        " && git branch other && git status --short && git log --oneline | wc -l && git diff HEAD --stat && git stash list"
    ),
    "gcc": "printf 'int main(void){return 0;}' > m.c && gcc -o m m.c && ./m && echo built",
    "make": "printf 'all:\\n\\techo made > made\\n' > Makefile && make -s -j2 && cat made",
    "node": 'node -e \'require("fs").writeFileSync("n", "1"); console.log(require("os").tmpdir())\'',
    "npm": "npm init -y > /dev/null && test -f package.json && npm --version",
    "python3": "python3 -c 'import tempfile, sqlite3, ssl; tempfile.TemporaryFile(); sqlite3.connect(\"d\")' && echo done",
    "jq": "echo '{\"a\": 1}' | jq .a",
    "sh": 'mktemp > /dev/null && touch "$HOME/x" && sort < /etc/passwd | head -1 > first && cat <(echo sub) first',
}


@pytest.mark.parametrize("program", sorted(WORK))
def test_honest_work_goes_on(tmp_path: Path, sandbox: Any, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    said = run(tmp_path, sandbox, WORK[program])
    assert said.ok, said.value
    assert said.sandbox == sandbox
    assert said.value["output"].strip()


def test_a_virtual_environment_on_the_path_works_wherever_it_lies(
    tmp_path: Path, sandbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "test_it.py").write_text("def test_it(tmp_path):\n    assert tmp_path.exists()\n")
    said = run(tmp_path, sandbox, "python -m pytest -q test_it.py && python -c 'import sys; print(sys.prefix)'")
    assert said.ok, said.value
    assert said.value["output"].strip().endswith(str(Path(sys.prefix).resolve()))


def test_at_its_time_limit_all_of_a_command_ends(tmp_path: Path, sandbox: Any) -> None:
    mark, started = f"300.{os.getpid()}", time.monotonic()
    said = run(tmp_path, sandbox, f"echo before; setsid sleep {mark} & trap '' TERM; sleep {mark}; sleep {mark}", 1)
    assert (said.error_type, said.sandbox) == ("timeout", sandbox)
    assert said.value["output"] == "before\n"
    assert time.monotonic() - started < 8
    over = time.monotonic() + 5
    while any(mark in (arguments(one) or "") for one in Path("/proc").iterdir() if one.name.isdecimal()):
        assert time.monotonic() < over
        time.sleep(0.02)


def arguments(process: Path) -> str | None:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return None


def test_limits_hold(tmp_path: Path, sandbox: Any) -> None:
    said = run(tmp_path, sandbox, "ulimit -c; ulimit -d; ulimit -f; ulimit -t")
    assert said.value["output"].split() in (["0", "4194304", "4194304", "3600"], ["0", "4194304", "8388608", "3600"])


def test_a_home_is_no_workspace(tmp_path: Path, sandbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for folder in (tmp_path / "home", tmp_path):
        said = run(folder, sandbox, "touch made")
        assert (said.status, said.code) == ("denied", "sandbox.unavailable")
        assert not (folder / "made").exists()
    (tmp_path / "home" / "work").mkdir()
    assert run(tmp_path / "home" / "work", sandbox, "touch made").ok


def test_a_read_only_sandbox_runs_any_program_and_changes_nothing(tmp_path: Path, sandbox: Any) -> None:
    (tmp_path / "f").write_text("old")
    said = run(tmp_path, "read-only", "cat f; touch $TMPDIR/x && echo made; echo new > f")
    assert said.error_type == "exec_nonzero"
    assert said.value["output"].startswith("oldmade\n")
    assert (tmp_path / "f").read_text() == "old"


GIT = "git init -q . && git config user.name a && git config user.email b"


def test_git_itself_writes_its_folder_and_no_other_command_does(tmp_path: Path, sandbox: Any) -> None:
    assert run(tmp_path, sandbox, GIT).ok
    assert run(tmp_path, sandbox, "echo x > f && git add f && git commit -qm one && git log --oneline").ok
    for command in ("echo x > .git/HEAD", "touch .git/made", "rm -r .git", "mv .git away"):
        assert run(tmp_path, sandbox, command).error_type == "exec_nonzero", command
    assert run(tmp_path, sandbox, "touch .git/made", git=()).error_type == "exec_nonzero"
    assert run(tmp_path, sandbox, "touch .git/made", git=("touch",)).ok
    assert run(tmp_path, sandbox, "git status; echo x > .git/hooks/pre-commit").error_type == "exec_nonzero"
    assert run(tmp_path, sandbox, "git log --oneline").ok


def test_commands_are_confined_unless_something_else_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = builtin_tools(tmp_path).execute("exec_shell", {"command": "touch made"})
    assert (said.status, said.code) == ("denied", "sandbox.unavailable")
    assert not (tmp_path / "made").exists()
    assert "sandbox" not in str(said.message)
    assert builtin_tools(tmp_path, sandbox="none").execute("exec_shell", {"command": "touch made"}).ok
