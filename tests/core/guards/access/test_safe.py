"""
Programs that a guard lets run as far as they only read.
"""

from pathlib import Path

import pytest

from guardrails import Policy, PolicyError, Shell, Tool
from guardrails.core.guards.base import Facts
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import Denial, ToolCall


PLAIN = Tool(name="bash", commands=("command",))
BY_ARGV = Tool(name="bash", commands=("command",), by_argv=True)
READING = Shell(safe=("cat", "find", "git", "grep", "head", "jq", "ls", "pytest", "rg", "sed", "sort", "wc", "xargs"))


def refusal(guard: Shell, command: object, tool: Tool) -> Denial | None:
    said = guard.check(ToolCall(tool.name, {"command": command}, "1", None, None), SessionState(), Facts(0, tool))
    assert said is None or isinstance(said, Denial)
    return said


@pytest.mark.parametrize("tool", [PLAIN, BY_ARGV], ids=["by a shell", "by argv"])
@pytest.mark.parametrize(
    "command",
    [
        "git status --short && git diff | head -50",
        "find . -name '*.py' | xargs wc -l | sort -n",
        "find . -name '*.py' -exec sed -n 1,5p '{}' ';'",
        "cat a.json | jq '.env' | grep -v x",
        "pytest -q tests/test_a.py",
        ["rg", "-n", "$HOME", "src"],
    ],
)
def test_commands_that_only_read_run(command: object, tool: Tool) -> None:
    assert refusal(READING, command, tool) is None


@pytest.mark.parametrize("tool", [PLAIN, BY_ARGV], ids=["by a shell", "by argv"])
@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("rg --pre cat x", "`--pre` of `rg` starts a program for each file", "Leave `--pre` out."),
        ("git status && git log --output=x", "`--output` of `git log` writes a file", "Leave `--output` out."),
        ("git -c core.pager=x log", "`-c` of `git` sets what may start a program", "Leave `-c` out."),
        ("ls | xargs sort", "may be an option of it", "Write `--` behind the options of `sort`."),
        ("find . -exec rm '{}' ';'", "there are no rules for `rm`", ""),
        ("cat a | sh", "", ""),
        ("make", "is not among the allowed commands", "what only reads of `cat`"),
        (["sed", "-i", "s/a/b/", "f"], "`-i` of `sed` changes files", "Print lines as"),
    ],
)
def test_other_commands_are_refused_with_what_to_write(command: object, tool: Tool, message: str, hint: str) -> None:
    said = refusal(READING, command, tool)
    assert said is not None
    assert said.code == "shell.allow"
    assert message in said.message
    assert hint in said.hint


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("ls *.py src/*", True),
        ("sed -n 1p *.py", True),
        ("sed *.py", False),
        ("sort *.txt | uniq -c", False),
        ("git diff -- src/*.py > out.txt", True),
        ("git log > .git/config", False),
        ("cd src && git status", True),
        ("LANG=C sort a", True),
        ("GIT_PAGER=id git log", False),
        ("GIT_EXTERNAL_DIFF=id git diff", False),
        ("RIPGREP_CONFIG_PATH=x rg y", False),
        ("PATH=. ls", False),
    ],
)
def test_patterns_and_redirections_are_judged_where_no_shell_reads_them(command: str, *, passes: bool) -> None:
    assert (refusal(READING, command, BY_ARGV) is None) is passes


def test_rules_of_allow_and_of_deny_stand_beside_it() -> None:
    guard = Shell(safe=("git",), allow=("git push",), deny=("git show",))
    assert refusal(guard, "git log && git push", PLAIN) is None
    denied = refusal(guard, "git show HEAD", PLAIN)
    assert denied is not None
    assert denied.code == "shell.deny"
    assert refusal(guard, "git push --force", PLAIN) is not None


def test_a_program_that_another_one_starts_must_be_listed_too() -> None:
    guard = Shell(safe=("find", "xargs", "ls"))
    assert refusal(guard, "find . -exec ls '{}' ';'", PLAIN) is None
    assert refusal(guard, "find . -exec cat '{}' ';'", PLAIN) is not None
    assert refusal(guard, "ls | xargs cat", PLAIN) is not None


def test_a_program_without_rules_is_a_mistake_of_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nshell: {safe: [git, make]}\n")
    with pytest.raises(PolicyError, match="there are no rules for `make`, only for basename, cat"):
        Policy.load(file)
