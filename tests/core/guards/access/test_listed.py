"""
An allow list held against commands that are run by argv: what passes, and what is said of the rest.
"""

import sys

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrails import Policy, Rule, Shell, Tool
from guardrails.core.commands import UnreadableError
from guardrails.core.commands.language import judged, read
from guardrails.core.guards.base import Facts
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import Denial, ToolCall


ROOT = Path(__file__).parents[4]
TOOL = Tool(name="exec_shell", commands=("command",), by_argv=True)


def refusal(guard: Shell, command: object, tool: Tool = TOOL) -> Denial | None:
    said = guard.check(ToolCall(tool.name, {"command": command}, "1", None, None), SessionState(), Facts(0, tool))
    assert said is None or isinstance(said, Denial)
    return said


ALLOW = (
    "ls *",
    "cat src/*",
    "wc *",
    "git {status,log} *",
    "./run.sh",
    "./tools/x *",
    "timeout *",
    "> out/*",
    "APP_*=*",
    "< keys/a",
)


@pytest.mark.parametrize(
    "command",
    [
        "ls src/*.py | wc -l",
        "ls 2>&1 | wc -l 2>/dev/null",
        "ls > list.txt && wc < list.txt; ls >> logs/all.log 2>&1",
        "ls > out/anything.sh",
        "cd out && ls > anything.sh",
        "APP_MODE=test LANG=C ls",
        "git status --short &> s.txt || ls",
        "./run.sh",
        "cd src && ls && wc -l *.py",
        "cd a && cd .. && ./run.sh",
        "cat src/a.py",
        "cd src && cat a.py",
        "cd src/deep && cat ../a.py",
        "cd tools && ./x -v",
        "timeout 5 wc *.py",
        "ls \\\n  -la",
        "ls # here\nwc a",
        "(cd src && ls) | wc -l",
        "wc <<'E'\n$(id)\nE",
        "wc -l {a,b}.txt",
        ["wc", "$x"],
        "",
    ],
)
def test_every_program_file_and_variable_of_a_script_that_passes_is_listed(command: object) -> None:
    assert refusal(Shell(allow=ALLOW), command) is None


@pytest.mark.parametrize(
    ("command", "shown", "hint"),
    [
        ("ls; id", "`id`", "Allowed are: `ls *`"),
        ("ls | git push", "`git push`", "Of `git` these are allowed: `git {status,log} *`."),
        ("ls && timeout 5 id", "`id`", "Allowed are"),
        ("(ls; id)", "`id`", "Allowed are"),
        ("cat src/*.py", "`cat src/*.py`", "Of `cat` these"),
        ("cat a.py", "`cat a.py`", "Of `cat` these"),
        ("cd lib && cat src/a.py", "`cat src/a.py`", "Run it without `cd`, with paths that begin with `lib/`"),
        ("cd src; cat a.py", "`cat a.py`", "Of `cat` these"),
        ("cd src && cat ../a.py", "`cat ../a.py`", "Of `cat` these"),
        ("cd a && ./run.sh", "`./run.sh`", "Run it without `cd`"),
        ("cd a; ./run.sh", "`./run.sh`", ""),
        ("src/../run.sh", "`src/../run.sh`", ""),
        ("ls > run.sh", "`> run.sh`", "a name such as `out.txt`"),
        ("ls > .env", "`> .env`", "Write it with a tool for files"),
        ("ls > Makefile", "`> Makefile`", ""),
        ("cd a && ls > ../Makefile", "`> Makefile`", ""),
        ("ls > .git/hooks/pre-commit", "`> .git/hooks/pre-commit`", "Use `git` itself."),
        ("PATH=. ls", "`PATH=.`", "Leave `PATH=` out."),
        ("NODE_OPTIONS='-r ./x' ls", "`NODE_OPTIONS=-r ./x`", "Leave `NODE_OPTIONS=` out."),
        ("./run.sh < keys/b", "`./run.sh`", ""),
        ("ls $(id)", "`ls $(id)`", "Run the inner command by a call of its own"),
        ("ls $HOME", "`ls $HOME`", "Write the value itself"),
        ("ls &", "`ls &`", "Leave the `&` out"),
        ("cd .. && ls", "`cd .. && ls`", "Name a file or folder of the workspace"),
        ("source x", "`source x`", "Name the program by its path"),
        ("timeout 5 sh -c 'ls > x'", "`timeout 5 sh -c 'ls > x'`", "Leave it out"),
    ],
)
def test_what_is_not_listed_is_named_with_the_nearest_form_that_would_pass(command: str, shown: str, hint: str) -> None:
    said = refusal(Shell(allow=ALLOW), command)
    assert said is not None
    assert said.code == "shell.allow"
    assert shown in said.message or shown.strip("`") in said.message
    assert hint in said.hint


def test_a_file_that_is_read_by_a_redirection_counts_as_a_word() -> None:
    guard = Shell(allow=("wc *", "cat src/*", "cat", "sort -u", "< in/*"))
    assert refusal(guard, "wc < any") is None
    assert refusal(guard, "cat < src/a") is None
    assert refusal(guard, "sort -u < in/x") is None
    assert refusal(guard, "cat < keys") is not None
    assert refusal(guard, "sort -u < keys") is not None


def test_code_may_be_written_by_who_may_run_any_of_it() -> None:
    text = "cat > tool.py <<'E'\nprint(1)\nE\npython3 tool.py"
    assert refusal(Shell(allow=("cat *", "python3 *")), text) is None
    assert refusal(Shell(allow=("cat *", "python3 tool.py", "python3 -m *")), text) is not None
    assert refusal(Shell(allow=("cat *", "python3 *")), "cat a.txt > run.sh") is not None
    assert refusal(Shell(allow=("cat *", "python3 *")), "cat a.txt > .hooks/a.py") is not None


def test_a_rule_for_any_program_is_one_for_no_file_and_no_variable() -> None:
    guard = Shell(allow=("* *",))
    assert refusal(guard, "anything at all") is None
    assert refusal(guard, "ls > Makefile") is not None
    assert refusal(guard, "LD_PRELOAD=x ls") is not None


def test_programs_that_only_read_pass_without_a_rule_of_their_own() -> None:
    guard = Shell(safe=("git", "cat", "grep"), allow=("ls *",))
    assert refusal(guard, "git log --oneline | grep -n x && cat *.py < in.txt && ls > out.txt") is None
    said = refusal(guard, "git log --output=x")
    assert said is not None
    assert "--output" in said.message


def test_what_is_denied_stays_denied() -> None:
    guard = Shell(allow=("rm *", "ls *"), deny=("rm -r * {/,~}",))
    assert refusal(guard, "rm -rf build && ls") is None
    said = refusal(guard, "cd src && rm -rf /")
    assert said is not None
    assert said.code == "shell.deny"


def test_what_is_piped_into_a_shell_is_undecidable() -> None:
    said = refusal(Shell(allow=("cat *", "sh")), "cat x | sh")
    assert said is not None
    assert said.code == "shell.undecidable"


@pytest.mark.parametrize("command", ["ls *.py", "ls > x.txt", "ls\nls", "ls 2>&1", "LANG=C ls"])
def test_a_tool_that_does_not_run_by_argv_is_held_to_the_plain_form(command: str) -> None:
    said = refusal(Shell(allow=("ls *",)), command, Tool(name="bash", commands=("command",)))
    assert said is not None
    assert "is no plain command" in said.message


def test_a_rule_of_a_policy_may_declare_it() -> None:
    declared = Rule(match="run", declared={"commands": ("command",), "by_argv": True})
    policy = Policy([Shell(allow=("ls *",))], rules=[declared])
    with policy.session("s") as session:
        assert session.call("run", {"command": "ls *.py 2>&1"}, lambda *_: "done").ok
        assert session.call("run", {"command": "ls $x"}, lambda *_: "done").code == "shell.allow"


HONEST: dict[str, list[str]] = yaml.safe_load((ROOT / "tests/core/commands/honest.yaml").read_text(encoding="utf-8"))


def passes(command: str) -> bool:
    """
    Whether rules for the programs of *command* let it pass.
    """
    try:
        programs = {each.words[0] for run in judged(read(command)).runs for each in run.commands}
    except UnreadableError:
        return False
    return refusal(Shell(allow=tuple(f"{program} *" for program in programs)), command) is None


def test_of_the_honest_commands_nearly_all_run_under_rules_for_their_programs() -> None:
    given: list[Any] = [*HONEST["plain"], *HONEST["other"]]
    run = sum(map(passes, given))
    sys.stdout.write(f"{run} of {len(given)} honest commands run under rules for their programs\n")
    assert run >= 56
    assert run >= len(given) * 0.9


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("(wc -l) < data/a", None),
        ("(wc -l < data/a) < b.txt", None),
        ("((wc -l)) < data/a", "shell.allow"),
        ("( ( wc -l ) ) < data/a", None),
        ("(wc -l) < b.txt", "shell.allow"),
        ("( ( wc -l ) ) < b.txt", "shell.allow"),
        ("(wc -l | wc -l) < b.txt", "shell.allow"),
        ("(cd data && wc -l) < a", "shell.unreadable"),
    ],
)
def test_a_file_that_a_group_reads_is_read_by_its_commands(command: str, code: str | None) -> None:
    said = refusal(Shell(allow=("wc -l", "< data/*")), command)
    assert (said.code if said else None) == code


@pytest.mark.parametrize("command", ["find . -name *.py", "find . -iname readme*"])
def test_a_pattern_that_find_was_meant_to_get_is_told_to_be_quoted(command: str) -> None:
    said = refusal(Shell(safe=("find",)), command)
    assert said is not None
    assert "between single quotes" in said.hint


def test_where_a_program_is_needs_no_rule_and_starts_nothing() -> None:
    assert refusal(Shell(allow=("ls",)), "command -v node && ls") is None
    assert refusal(Shell(allow=("ls",)), "command node") is not None
    assert refusal(Shell(allow=("ls", "timeout *")), "timeout 5 command -v node") is not None


@pytest.mark.parametrize("command", ["ls; echo $?", 'ls; echo "exit code: $?"'])
def test_an_exit_code_is_told_to_be_in_the_result(command: str) -> None:
    said = refusal(Shell(allow=("ls", "echo *")), command)
    assert said is not None
    assert "the result tells the exit code" in said.hint
