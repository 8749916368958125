"""
The shell tool: commands end, with all they started, their output is bounded, and under an allow list no shell is started. In a sandbox honest
work goes on, `.git` is git's, and what cannot be confined is refused.
"""

import os
import re
import shutil
import sys

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrails import Budget, Envelope, MemorySink, Policy
from guardrails import Shell as Guard
from guardrails.agent.builtin import Root, Shell, builtin_tools
from guardrails.core.chain import Rule
from tests.children import is_gone, until
from tests.tables import table


COMMANDS = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())


def run(folder: Path, command: str, timeout: int | None = None, **settings: Any) -> Envelope:
    said = Shell(Root(folder), **{"sandbox": "none", **settings}).tools["exec_shell"](command, timeout)
    assert isinstance(said, Envelope)
    return said


def ends(file: Path) -> None:
    """
    Wait until the process whose number is in *file* has ended.
    """
    until(lambda: is_gone(file.read_text().strip()))


@table("command, output, code, message", COMMANDS["ends"])
def test_d10_d4_a_command_runs_in_the_workspace_and_its_failure_is_an_error_with_its_output(
    tmp_path: Path, command: str, output: str, code: int, message: str
) -> None:
    envelope = run(tmp_path, command)
    assert envelope.value == {"output": output.format(folder=tmp_path), "exit_code": code}
    assert envelope.error_type == ("exec_nonzero" if code else None)
    assert message in str(envelope.error_message)


def test_d12_at_its_time_limit_a_command_is_killed_with_its_children(tmp_path: Path) -> None:
    for command in (
        "(trap '' TERM INT HUP; echo $BASHPID > pid; sleep 600; sleep 600) & wait",
        "bash -c 'bash -c \"echo \\$\\$ > pid; sleep 600\" & sleep 600' & sleep 600",
    ):
        said = run(tmp_path, f"echo before; {command}", timeout=3)
        assert (said.error_type, said.is_complete, said.value["output"][:7]) == ("timeout", False, "before\n")
        ends(tmp_path / "pid")


def test_d12_what_runs_in_the_background_ends_with_the_command_and_all_of_it_with_its_session(
    tmp_path: Path, clock: Any
) -> None:
    assert run(tmp_path, "sleep 600 & echo $! > pid; echo done").value["output"] == "done\n"
    ends(tmp_path / "pid")
    session = Policy([Budget(max_elapsed=10)]).session("s", clock=clock, records=MemorySink())
    session.request()
    clock.advance(7)
    command = Shell(Root(tmp_path), sandbox="none").tools["exec_shell"]
    envelope = session.call("exec_shell", {}, lambda *_: command("echo $$ > pid; exec sleep 600"))
    assert envelope.error_type == "timeout"
    ends(tmp_path / "pid")


def test_a_flood_of_output_is_bounded_and_both_ends_are_kept(tmp_path: Path) -> None:
    said = run(tmp_path, "echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=120)
    assert re.fullmatch(r"first\nx+\n\[\.\.\. [\d,]+ bytes left out \.\.\.]\nx+\nlast\n", said.value["output"])
    assert len(said.value["output"]) < 25_000
    assert said.is_complete is False


def test_secrets_of_the_environment_are_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("PLAIN_SETTING", "seen")
    output = run(tmp_path, "env").value["output"]
    assert "PLAIN_SETTING=seen" in output
    assert "sk-1" not in output
    assert run(tmp_path, "echo $A", environment={"A": "own"}).value["output"] == "own\n"


# Under an allow list

ALLOWED = ("cat *", "cd *", "echo *", "false", "ls *", "no-such-program *", "printf *", "python3 *", "sleep *", "true")
LIST = Guard(allow=ALLOWED)


def called(folder: Path, command: str, *guards: Guard, rules: tuple[Rule, ...] = ()) -> Envelope:
    arguments, tools = {"command": command}, builtin_tools(folder, sandbox="none")
    policy = Policy(list(guards), tools=tools.tools, rules=list(rules), on_error="allow")
    with policy.session("s") as session:
        return session.call("exec_shell", arguments, tools.execute)


@table("command, output, code", COMMANDS["plain"])
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


# In a sandbox


def boxed(folder: Path, command: str, sandbox: Any = "auto") -> Envelope:
    return run(folder, command, sandbox=sandbox)


@table("program", COMMANDS["work"])
def test_honest_work_goes_on(works: None, tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    (tmp_path / program).mkdir()
    said = boxed(tmp_path / program, COMMANDS["work"][program])
    assert said.ok, said.value
    assert said.sandbox == "bwrap"
    assert said.value["output"].strip()


def test_a_virtual_environment_on_the_path_works_wherever_it_lies(
    works: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "test_it.py").write_text("def test_it(tmp_path):\n    assert tmp_path.exists()\n")
    said = boxed(tmp_path, "python -m pytest -q test_it.py && python -c 'import sys; print(sys.prefix)'")
    assert said.ok, said.value
    assert said.value["output"].strip().endswith(str(Path(sys.prefix).resolve()))


def test_limits_hold(works: None, tmp_path: Path) -> None:
    said = boxed(tmp_path, "ulimit -c; ulimit -d; ulimit -f; ulimit -t")
    assert said.value["output"].split() in (["0", "4194304", "4194304", "3600"], ["0", "4194304", "8388608", "3600"])


def test_a_read_only_sandbox_runs_any_program_and_changes_nothing(works: None, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    said = boxed(tmp_path, "cat f; touch $TMPDIR/x && echo made; echo new > f", sandbox="read-only")
    assert said.error_type == "exec_nonzero"
    assert said.value["output"].startswith("oldmade\n")
    assert (tmp_path / "f").read_text() == "old"


def test_git_itself_writes_its_folder_and_no_other_command_does(works: None, tmp_path: Path) -> None:
    begin = "git init -q . && git config user.name a && git config user.email b"
    for command in (begin, "echo x > f && git add f && git commit -qm one && git log --oneline"):
        assert boxed(tmp_path, command).ok
    for command in ("echo x > .git/HEAD", "rm -r .git", "mv .git away", "git status; echo x > .git/hooks/pre-commit"):
        assert boxed(tmp_path, command).error_type == "exec_nonzero", command
    tools = builtin_tools(tmp_path)
    with Policy([Guard(allow=("git *", "ls *", "touch *"))], tools=tools.tools).session("s") as session:
        for allowed, kind in (("ls -A | git hash-object -w --stdin", None), ("touch .git/x", "exec_nonzero")):
            assert session.call("exec_shell", {"command": allowed}, tools.execute).error_type == kind
