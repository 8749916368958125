"""
The shell tool without a sandbox: commands end, with all they started, their output is bounded, and under an allow list no
shell is started.
"""

import os
import re
import time

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Envelope, MemorySink, Policy
from guardrails import Shell as Guard
from guardrails.agent.builtin import Root, Shell, builtin_tools
from guardrails.agent.builtin.shell import Bounded
from guardrails.core.chain import Rule
from tests.tables import table


pytestmark = pytest.mark.system


def run(folder: Path, command: str, timeout: int | None = None, **settings: Any) -> Envelope:
    said = Shell(Root(folder), **{"sandbox": "none", **settings}).tools["exec_shell"](command, timeout)
    assert isinstance(said, Envelope)
    return said


def gone(file: Path) -> bool:
    """
    Whether the process whose number is in *file* has ended, within two seconds.
    """
    for _ in range(100):
        try:
            if Path(f"/proc/{file.read_text().strip()}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_d10_exec_shell_runs_a_command_in_the_workspace_and_gives_its_output(tmp_path: Path) -> None:
    said = run(tmp_path, 'pwd; echo err >&2; read x; echo "[$x]"')
    assert said.value == {"output": f"{tmp_path}\nerr\n[]\n", "exit_code": 0}
    assert said.is_complete


def test_d4_a_failing_command_is_an_error_with_its_output(tmp_path: Path) -> None:
    for command, code, message in (("exit 3", 3, "exit code 3"), ("kill -9 $$", -9, "signal 9"), ("gone", 127, "127")):
        said = run(tmp_path, command)
        assert (said.error_type, said.value["exit_code"]) == ("exec_nonzero", code)
        assert message in str(said.error_message)


def test_d12_at_its_time_limit_a_command_is_killed_with_its_children(tmp_path: Path) -> None:
    for command in (
        "echo $$ > pid; sleep 60",
        "(trap '' TERM INT HUP; echo $BASHPID > pid; sleep 60; sleep 60) & wait",
        "bash -c 'bash -c \"echo \\$\\$ > pid; sleep 60\" & sleep 60' & sleep 60",
    ):
        started = time.monotonic()
        said = run(tmp_path, f"echo before; {command}", timeout=1)
        assert (said.error_type, said.is_complete, said.value["output"][:7]) == ("timeout", False, "before\n")
        assert time.monotonic() - started < 5
        assert gone(tmp_path / "pid")


def test_what_runs_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    started = time.monotonic()
    said = run(tmp_path, "sleep 60 & echo $! > pid; echo done")
    assert said.value["output"] == "done\n"
    assert time.monotonic() - started < 5
    assert gone(tmp_path / "pid")


def test_d12_a_command_ends_when_the_time_of_its_session_is_up(tmp_path: Path, clock: Any) -> None:
    session = Policy([Budget(max_elapsed=10)]).session("s", clock=clock, records=MemorySink())
    session.request()
    clock.advance(9.5)
    command = Shell(Root(tmp_path), sandbox="none").tools["exec_shell"]
    envelope = session.call("exec_shell", {}, lambda *_: command("echo $$ > pid; exec sleep 60"))
    assert envelope.error_type == "timeout"
    assert gone(tmp_path / "pid")


@table("sizes", [[10], [100], [101], [50, 51], [1, 1_000, 1], [7] * 100])
def test_bounded_output_is_exact_until_it_must_be_cut(sizes: list[int]) -> None:
    bounded, whole = Bounded(100), b"".join(bytes([65 + n % 26]) * size for n, size in enumerate(sizes))
    reading, writing = os.pipe()
    os.write(writing, whole)
    os.close(writing)
    bounded.drain(reading)
    cut = f"{whole[:50].decode()}\n[... {len(whole) - 100:,} bytes left out ...]\n{whole[-50:].decode()}"
    assert bounded.text() == (whole.decode() if len(whole) <= 100 else cut)


def test_a_flood_of_output_is_bounded_and_both_ends_are_kept(tmp_path: Path) -> None:
    said = run(tmp_path, "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=30)
    assert re.fullmatch(r"first\nx+\n\[\.\.\. [\d,]+ bytes left out \.\.\.]\nx+\nlast\n", said.value["output"])
    assert len(said.value["output"]) < 25_000
    assert said.is_complete is False


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, "x" * 3_000_000).error_type == "too_large"


def test_secrets_of_the_environment_are_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("PLAIN_SETTING", "seen")
    output = run(tmp_path, "env").value["output"]
    assert "PLAIN_SETTING=seen" in output
    assert "sk-1" not in output
    assert run(tmp_path, "echo $A", environment={"A": "own"}).value["output"] == "own\n"


def test_a_sandbox_that_is_not_known_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of auto, bwrap, read-only, none"):
        run(tmp_path, "true", sandbox="landlock")


# Under an allow list

ALLOWED = ("cat *", "cd *", "echo *", "false", "ls *", "no-such-program *", "printf *", "python3 *", "sleep *", "true")
LIST = Guard(allow=ALLOWED)
LEAVES = 'import subprocess; subprocess.Popen(["sleep", "60"]); print("x")'
PARENT = "import os; print(open(f'/proc/{os.getppid()}/comm').read())"


def called(folder: Path, command: str, *guards: Guard, rules: tuple[Rule, ...] = ()) -> Envelope:
    arguments, tools = {"command": command}, builtin_tools(folder, sandbox="none")
    policy = Policy(list(guards), tools=tools.tools, rules=list(rules), on_error="allow")
    with policy.session("s") as session:
        return session.call("exec_shell", arguments, tools.execute)


@table(
    "command, output, code",
    [
        ("echo one | cat && echo two; ls nowhere || echo three", "one\ntwo\n*nowhere*three\n", 0),
        ("cd src && ls | cat; cd ..; ls", "a.py\nsrc\n", 0),
        ("printf '%s|' '$HOME' \"a b\"", "$HOME|a b|", 0),
        ("false && echo no; true || echo no; echo yes", "yes\n", 0),
        ("no-such-program x || echo next", "*not found\nnext\n", 0),
        ("echo x | no-such-program", "*not found\n", 127),
        ("no-such-program | cat", "*not found\n", 0),
        ("cd nowhere", "cd: nowhere: there is no such folder\n", 1),
        ("python3 -c 'print(1); raise SystemExit(3)' | cat", "1\n", 0),
        ("python3 -c 'raise SystemExit(3)'", "", 3),
        # What a program leaves behind ends with it, and not with those that read of it.
        (f"python3 -c '{LEAVES}' | cat", "x\n", 0),
        # No shell is its parent.
        (f'python3 -c "{PARENT}"', "py*", 0),
    ],
)
def test_under_an_allow_list_plain_commands_run_as_bash_would_run_them(
    tmp_path: Path, command: str, output: str, code: int
) -> None:
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src" / "a.py").write_text("")
    said = called(tmp_path, command, LIST)
    assert said.value["exit_code"] == code
    assert re.fullmatch(re.escape(output).replace(r"\*", ".*"), said.value["output"], re.DOTALL)


class Failing(Guard):
    """
    A guard with an allow list that fails, and lets pass.
    """

    def check(self, *given: Any) -> Any:
        raise RuntimeError


BY_RULE = Rule(match="exec_*", guards={"shell": {"allow": ("echo *",)}})


@table(
    "command, guard, rules, said",
    [
        ('for x in a b; do echo "$x"; done', Guard(), (), "a\nb\n"),
        ("echo $((1 + 1))", Guard(deny=("sudo",)), (), "2\n"),
        ("echo $((1 + 1))", Guard(allow=("ls",), mode="observe"), (), "2\n"),
        ("printf '%s|' '$HOME' `echo` ", LIST, (), "shell.allow"),
        ("echo '*'", Guard(), (BY_RULE,), "*\n"),
        ("echo $x", Guard(), (BY_RULE,), "shell.allow"),
        ("echo $HOME", Failing(allow=("ls *",)), (), "validation"),
    ],
)
def test_a_shell_runs_the_text_only_where_no_allow_list_is_enforced(
    tmp_path: Path, command: str, guard: Guard, rules: tuple[Rule, ...], said: str
) -> None:
    envelope = called(tmp_path, command, guard, rules=rules)
    assert said in (envelope.code, envelope.error_type, (envelope.value or {}).get("output"))


def test_d12_the_time_limit_of_plain_commands_ends_all_of_them(tmp_path: Path) -> None:
    tools = builtin_tools(tmp_path, sandbox="none")
    with Policy([LIST], tools=tools.tools).session("s") as session:
        given = {"command": "echo before; sleep 60 | cat", "timeout": 1}
        said = session.call("exec_shell", given, tools.execute)
    assert (said.error_type, said.value["output"]) == ("timeout", "before\n")
