"""
The shell tool under an allow list: what was judged runs, and no shell.
"""

import os

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope, Policy, Rule, Tool
from guardrails import Shell as Guard
from guardrails.agent.builtin import Root, Shell, builtin_tools
from guardrails.session.calls.current import current_list


LISTS = Guard(
    allow=("echo *", "printf *", "cat *", "ls *", "pwd", "wc *", "sleep *", "./tool *", "ps *", "python3 *"),
    safe=("git",),
)


def called(folder: Path, command: str, *guards: Guard, rules: tuple[Rule, ...] = (), **arguments: Any) -> Envelope:
    tools = builtin_tools(folder, sandbox="none")
    with Policy(list(guards), tools=tools.tools, rules=list(rules)).session("s") as session:
        return session.call("exec_shell", {"command": command, **arguments}, tools.execute)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo one | cat && echo two; ls nowhere 2>/dev/null || echo three", "one\ntwo\nthree\n"),
        ("cd src && ls *.py | wc -l > ../n.txt; cat ../n.txt < /dev/null", "2\n"),
        ("printf '%s|' '$HOME' `echo` ", None),
        ("LANG=C ls src/{a,b}.py\necho end # here", "src/a.py\nsrc/b.py\nend\n"),
        ("cat <<'E'\n$(id) `id`\nE", "$(id) `id`\n"),
    ],
)
def test_under_an_allow_list_a_command_runs_by_argv(tmp_path: Path, command: str, output: str | None) -> None:
    (tmp_path / "src").mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "src" / name).write_text("")
    said = called(tmp_path, command, LISTS)
    if output is None:
        assert said.code == "shell.allow"
    else:
        assert said.value["output"] == output


def test_no_shell_is_started_for_it(tmp_path: Path) -> None:
    parent = "import os; print(open(f'/proc/{os.getppid()}/comm').read())"
    assert called(tmp_path, f'python3 -c "{parent}"', LISTS).value["output"].strip().startswith("python")


@pytest.mark.parametrize("command", ["cd /", "echo x > /tmp/outside-of-it.txt", "cd /etc && ls", "cat < /etc/hostname"])
def test_a_path_outside_the_workspace_is_refused_before_anything_runs(tmp_path: Path, command: str) -> None:
    said = called(tmp_path, f"echo before > first.txt; {command}", LISTS)
    assert said.error_type == "invalid_path"
    assert "outside the workspace" in str(said.error_message)
    assert not (tmp_path / "first.txt").exists()


def test_a_path_of_the_workspace_may_be_absolute(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    said = called(tmp_path, f"cd {tmp_path}/src && pwd > {tmp_path}/at.txt", LISTS)
    assert said.ok
    assert (tmp_path / "at.txt").read_text() == f"{tmp_path}/src\n"


def test_without_an_allow_list_a_shell_runs_the_text(tmp_path: Path) -> None:
    assert called(tmp_path, 'for x in a b; do echo "$x"; done').value["output"] == "a\nb\n"
    assert called(tmp_path, "echo $((1 + 1))", Guard(deny=("sudo",))).value["output"] == "2\n"


def test_a_list_that_only_observes_changes_nothing(tmp_path: Path) -> None:
    assert called(tmp_path, "echo $((1 + 1))", Guard(allow=("ls",), mode="observe")).value["output"] == "2\n"


def test_a_list_of_a_rule_for_the_tool_holds_too(tmp_path: Path) -> None:
    rule = Rule(match="exec_*", guards={"shell": {"allow": ("echo *",)}})
    assert called(tmp_path, "echo *", Guard(), rules=(rule,)).value["output"] == "*\n"
    assert called(tmp_path, "echo $x", Guard(), rules=(rule,)).code == "shell.allow"


def test_if_it_is_declared_otherwise_plain_text_runs_by_argv_all_the_same(tmp_path: Path) -> None:
    rule = Rule(match="exec_shell", declared={"by_argv": False})
    assert called(tmp_path, "echo a | cat", LISTS, rules=(rule,)).value["output"] == "a\n"
    assert called(tmp_path, "echo *", LISTS, rules=(rule,)).code == "shell.allow"


def test_by_another_name_it_runs_what_was_judged_too(tmp_path: Path) -> None:
    run = Shell(Root(tmp_path), sandbox="none").tools["exec_shell"]
    tool = Tool(name="run", commands=("command",), by_argv=True)
    with Policy([LISTS], tools=[tool]).session("s") as session:
        said = session.call("run", {"command": "echo ?"}, lambda _, given: run(given["command"], None))
        assert said.value["output"] == "?\n"
        parent = "import os; print(open(f'/proc/{os.getppid()}/comm').read())"
        said = session.call("run", {"command": f'python3 -c "{parent}"'}, lambda _, given: run(given["command"], None))
        assert said.value["output"].startswith("python")


def test_it_refuses_by_itself_what_the_guard_would_refuse(tmp_path: Path) -> None:
    run = Shell(Root(tmp_path), sandbox="none", by_argv=True).tools["exec_shell"]
    assert run("echo a && echo b", None).value["output"] == "a\nb\n"
    for command in ("echo $x", "echo `id`", "ls &", "eval ls", "cd ..", "echo > ../x"):
        said = run(command, None)
        assert said.error_type == "validation"
        assert said.next_action_hint
    assert run("(ls; sh -c 'exit 7')", None).value["exit_code"] == 7


def test_a_guard_that_fails_and_lets_pass_opens_no_shell(tmp_path: Path) -> None:
    class Failing(Guard):
        def check(self, *given: Any) -> Any:
            raise RuntimeError

    tools = builtin_tools(tmp_path, sandbox="none")
    policy = Policy([Failing(allow=("ls *",))], tools=tools.tools, on_error="allow")
    with policy.session("s") as session:
        assert session.call("exec_shell", {"command": "echo $HOME"}, tools.execute).error_type == "validation"


def test_a_program_in_the_workspace_runs_as_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho tool $1\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "src").mkdir()
    assert called(tmp_path, "./tool x", LISTS).value["output"] == "tool x\n"
    assert called(tmp_path, "cd src && ./tool x", LISTS).code == "shell.allow"
    assert called(tmp_path, "cd src && ../tool x", LISTS).code == "shell.allow"
    assert called(tmp_path, "tool x", LISTS).code == "shell.allow"


def test_d12_its_time_limit_ends_all_of_it(tmp_path: Path) -> None:
    said = called(tmp_path, "echo before; sleep 60 | cat", LISTS, timeout=1)
    assert said.error_type == "timeout"
    assert said.value["output"] == "before\n"


def test_git_that_only_reads_starts_nothing_that_a_repository_asks_for(tmp_path: Path) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    made = called(
        tmp_path, f"git init -q . && echo a > a.txt && {git} add a.txt && {git} commit -q -m a && echo b > a.txt"
    )
    assert made.ok
    started = tmp_path / "started"
    (tmp_path / "started.sh").write_text(f"#!/bin/sh\necho > {started}\ncat $2 2>/dev/null\n")
    (tmp_path / "started.sh").chmod(0o755)
    with (tmp_path / ".git" / "config").open("a") as file:
        file.write("[diff]\n\texternal = ./started.sh\n[core]\n\tfsmonitor = ./started.sh\n\tpager = ./started.sh\n")
    said = called(tmp_path, "git diff && git status --short && git log -1 --format=%s", LISTS)
    assert said.ok
    assert "+b" in said.value["output"]
    assert not started.exists()


def test_outside_of_a_call_no_list_holds() -> None:
    assert current_list("exec_shell") is None
    assert os.environ.get("GUARDRAILS_LAUNCH_0") is None
