"""
The shell tool: commands end, with all they started, and their output is bounded.
"""

import time

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Envelope, MemorySink, Policy
from guardrails.agent.builtin import Root, Shell


def run(folder: Path, command: str, timeout: int | None = None, **settings: Any) -> Envelope:
    said = Shell(Root(folder), **{"sandbox": "none", **settings}).tools["exec_shell"](command, timeout)
    assert isinstance(said, Envelope)
    return said


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_d10_exec_shell_runs_a_command_in_the_workspace_and_gives_its_output(tmp_path: Path) -> None:
    said = run(tmp_path, 'pwd; echo err >&2; read x; echo "[$x]"')
    assert said.ok
    assert said.value["output"] == f"{tmp_path}\nerr\n[]\n"
    assert said.value["exit_code"] == 0
    assert said.is_complete


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [("echo x; exit 3", 3, "exit code 3"), ("kill -9 $$", -9, "signal 9"), ("no_such_program", 127, "exit code 127")],
)
def test_d4_a_failing_command_is_an_error_with_its_output(
    tmp_path: Path, command: str, code: int, message: str
) -> None:
    said = run(tmp_path, command)
    assert said.error_type == "exec_nonzero"
    assert said.value["exit_code"] == code
    assert message in str(said.error_message)


@pytest.mark.parametrize(
    "command",
    [
        "echo $$ > pid; sleep 60",
        "trap '' TERM; echo $$ > pid; while :; do sleep 1; done",
        "(trap '' TERM INT HUP; echo $BASHPID > pid; sleep 60; sleep 60) & wait",
        "bash -c 'bash -c \"echo \\$\\$ > pid; sleep 60\" & sleep 60' & sleep 60",
    ],
)
def test_d12_at_its_time_limit_a_command_is_killed_with_its_children(tmp_path: Path, command: str) -> None:
    started = time.monotonic()
    said = run(tmp_path, f"echo before; {command}", timeout=1)
    assert said.error_type == "timeout"
    assert said.value["output"].startswith("before\n")
    assert said.is_complete is False
    assert time.monotonic() - started < 5
    assert gone(int((tmp_path / "pid").read_text()))


def test_what_runs_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    started = time.monotonic()
    said = run(tmp_path, "sleep 60 & echo $! > pid; echo done")
    assert said.ok
    assert said.value["output"] == "done\n"
    assert said.value["background_processes"] == "killed"
    assert time.monotonic() - started < 5
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_flood_of_output_is_bounded_and_both_ends_are_kept(tmp_path: Path) -> None:
    said = run(tmp_path, "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=30)
    output = said.value["output"]
    assert len(output) < 25_000
    assert output.startswith("first\n")
    assert output.endswith("\nlast\n")
    assert "bytes left out" in output
    assert said.is_complete is False


@pytest.mark.parametrize(
    ("command", "kind"), [("a\0b", "validation"), ("\ud800", "validation"), ("x" * 3_000_000, "too_large")]
)
def test_what_cannot_be_started_is_an_error(tmp_path: Path, command: str, kind: str) -> None:
    assert run(tmp_path, command).error_type == kind


def test_secrets_of_the_environment_are_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("PLAIN_SETTING", "seen")
    output = run(tmp_path, "env").value["output"]
    assert "PLAIN_SETTING=seen" in output
    assert "sk-1" not in output
    assert run(tmp_path, "echo $A", environment={"A": "own"}).value["output"] == "own\n"


def test_a_command_ends_when_the_time_of_its_session_is_up(tmp_path: Path, clock: Any) -> None:
    sink = MemorySink()
    session = Policy([Budget(max_elapsed=10)]).session("s", clock=clock, records=sink)
    session.request()
    clock.advance(9.5)
    command = Shell(Root(tmp_path), sandbox="none").tools["exec_shell"]
    envelope = session.call("exec_shell", {}, lambda *_: command("echo $$ > pid; exec sleep 60"))
    assert envelope.error_type == "timeout"
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_sandbox_that_is_not_known_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of auto, bwrap, read-only, none"):
        run(tmp_path, "true", sandbox="landlock")
