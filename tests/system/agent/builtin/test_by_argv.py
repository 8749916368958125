"""
The shell tool under an allow list: plain commands run program by program, and no shell does.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope, Policy, Rule
from guardrails import Shell as Guard
from guardrails.agent.builtin import builtin_tools


pytestmark = pytest.mark.system
LIST = Guard(
    allow=("cat *", "cd *", "echo *", "false", "ls *", "no-such-program *", "printf *", "python3 *", "sleep *", "true")
)


def called(folder: Path, command: str, *guards: Guard, rules: tuple[Rule, ...] = (), **arguments: Any) -> Envelope:
    tools = builtin_tools(folder, sandbox="none")
    with Policy(list(guards), tools=tools.tools, rules=list(rules)).session("s") as session:
        return session.call("exec_shell", {"command": command, **arguments}, tools.execute)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo one | cat && echo two; ls nowhere || echo three", "one\ntwo\n*nowhere*three\n", 0),
        ("cd src && ls | cat; cd ..; ls", "a.py\nsrc\n", 0),
        ("printf '%s|' '$HOME' `echo` ", None, None),
        ("printf '%s|' '$HOME' \"a b\"", "$HOME|a b|", 0),
        ("false && echo no; true || echo no; echo yes", "yes\n", 0),
        ("no-such-program x || echo next", "*not found\nnext\n", 0),
        ("echo x | no-such-program", "*not found\n", 127),
        ("no-such-program | cat", "*not found\n", 0),
        ("cd nowhere", "cd: nowhere: there is no such folder\n", 1),
        ("python3 -c 'print(1); raise SystemExit(3)' | cat", "1\n", 0),
        ("python3 -c 'raise SystemExit(3)'", "", 3),
    ],
)
def test_under_an_allow_list_plain_commands_run_as_bash_would_run_them(
    tmp_path: Path, command: str, output: str | None, code: int | None
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    said = called(tmp_path, command, LIST)
    if output is None:
        assert said.code == "shell.allow"
        return
    assert said.value["exit_code"] == code
    assert re.fullmatch(re.escape(output).replace(r"\*", ".*"), said.value["output"], re.DOTALL)


def test_no_shell_is_started_for_it(tmp_path: Path) -> None:
    parent = "import os; print(open(f'/proc/{os.getppid()}/comm').read())"
    assert called(tmp_path, f'python3 -c "{parent}"', LIST).value["output"].strip().startswith("py")


def test_without_an_allow_list_a_shell_runs_the_text(tmp_path: Path) -> None:
    assert called(tmp_path, 'for x in a b; do echo "$x"; done').value["output"] == "a\nb\n"
    assert called(tmp_path, "echo $((1 + 1))", Guard(deny=("sudo",))).value["output"] == "2\n"
    assert called(tmp_path, "echo $((1 + 1))", Guard(allow=("ls",), mode="observe")).value["output"] == "2\n"


def test_a_list_of_a_rule_for_the_tool_holds_too(tmp_path: Path) -> None:
    rule = Rule(match="exec_*", guards={"shell": {"allow": ("echo *",)}})
    assert called(tmp_path, "echo '*'", Guard(), rules=(rule,)).value["output"] == "*\n"
    assert called(tmp_path, "echo $x", Guard(), rules=(rule,)).code == "shell.allow"


def test_a_guard_that_fails_and_lets_pass_opens_no_shell(tmp_path: Path) -> None:
    class Failing(Guard):
        def check(self, *given: Any) -> Any:
            raise RuntimeError

    tools = builtin_tools(tmp_path, sandbox="none")
    policy = Policy([Failing(allow=("ls *",))], tools=tools.tools, on_error="allow")
    with policy.session("s") as session:
        said = session.call("exec_shell", {"command": "echo $HOME"}, tools.execute)
        assert said.error_type == "validation"
        assert str(said.next_action_hint).startswith("Write the value itself")


def test_d12_its_time_limit_ends_all_of_it(tmp_path: Path) -> None:
    said = called(tmp_path, "echo before; sleep 60 | cat", LIST, timeout=1)
    assert said.error_type == "timeout"
    assert said.value["output"] == "before\n"
