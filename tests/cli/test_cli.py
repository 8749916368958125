"""
The command line as a whole.
"""

import subprocess
import sys

import pytest

from typer.testing import CliRunner

from guardrails import __version__
from guardrails.cli import app


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.system
def test_the_module_is_the_command() -> None:
    said = python("-m", "guardrails", "--version")
    assert (said.returncode, said.stdout) == (0, f"guardrails {__version__}\n")


def test_help_lists_the_commands() -> None:
    said = CliRunner().invoke(app, ["--help"])
    assert said.exit_code == 0
    assert "demo" in said.stdout
    assert "policy" in said.stdout
    assert "hook " in said.stdout
    assert "mcp " in said.stdout


@pytest.mark.system
@pytest.mark.parametrize(("name", "says"), [("hook", "usage: guardrails hook install"), ("mcp", "--listen")])
def test_the_commands_that_start_by_themselves_are_the_same_here(
    name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        app([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert says in shown
    assert python("-m", "guardrails", name, "--help").stdout.split() == shown.split()


@pytest.mark.system
def test_help_imports_nothing_that_a_command_needs() -> None:
    heavy = ["pydantic", "openai", "yaml", "orjson", "rich", "guardrails.policy.policy", "guardrails.session.session"]
    code = (
        "import sys; from guardrails.cli import app\n"
        "try: app(['--help'])\n"
        f"except SystemExit: print([m for m in {heavy} if m in sys.modules])"
    )
    said = python("-c", code)
    assert said.stdout.splitlines()[-1] == "[]", said.stderr


@pytest.mark.system
def test_the_help_of_a_command_imports_no_other_command() -> None:
    code = (
        "import sys; from guardrails.cli import app, COMMANDS\n"
        "try: app(['train', '--help'])\n"
        "except SystemExit: print([c for c in COMMANDS if 'guardrails.cli.' + c in sys.modules])"
    )
    said = python("-c", code)
    assert said.stdout.splitlines()[-1] == "['train']", said.stderr


def test_a_name_that_is_no_command_is_answered_by_those_like_it() -> None:
    said = CliRunner().invoke(app, ["polic"])
    assert said.exit_code == 2
    assert "Did you mean 'policy'?" in said.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["policy", "check"],
        ["policy", "nosuch"],
        ["demo", "--base-url", "http://127.0.0.1:9/v1"],
        ["demo", "chat.json"],
        ["demo", "--transcript", "chat.json", "--model", "gpt-5-mini"],
        ["demo", "--max-requests", "0"],
    ],
    ids=" ".join,
)
def test_a_wrong_use_ends_with_code_2(arguments: list[str]) -> None:
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 2
    assert "Error" in said.stderr
