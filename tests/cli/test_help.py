"""
The help of every command: it ends with examples, each of which is a command line that works, and fits the terminal.
"""

import shlex
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from typer.main import get_command
from typer.testing import CliRunner

from guardrails import __version__
from guardrails.cli import app
from guardrails.hooks import main as hook
from guardrails.hooks.install import HOMES
from guardrails.mcp.command import main as mcp
from guardrails.mcp.command import options_of
from tests.children import ran
from tests.tables import table


ROOT: Any = get_command(app)


def commands(group: Any = ROOT, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [before]
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        found += commands(command, (*before, name)) if hasattr(command, "list_commands") else [(*before, name)]
    return found


PARTS = [("hook", "install"), ("hook", "uninstall"), ("hook", "status"), ("mcp", "pins"), ("mcp", "allow")]
"""The commands of those that start by themselves."""


def helped(words: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    if words[:1] in (("hook",), ("mcp",)):
        with suppress(SystemExit):
            (hook if words[0] == "hook" else mcp)([*words[1:], "--help"])
        return str(capsys.readouterr().out)
    return CliRunner().invoke(app, [*words, "--help"]).stdout


def exemplary(text: str) -> list[list[str]]:
    shown = text.partition("Examples:\n")[2].partition("\n\n")[0].replace("\\\n", "")
    return [shlex.split(line, comments=True) for line in shown.splitlines()]


def parse(words: list[str]) -> None:
    assert words[0] == "guardrails"
    command, context, rest = ROOT, ROOT.make_context("guardrails", words[1:]), words[1:]
    while hasattr(command, "list_commands") and rest:
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)
        rest = rest if hasattr(command, "list_commands") else []


@table("words", [*commands(), *PARTS])
def test_each_command_has_a_few_examples_that_parse(words: tuple[str, ...], monkeypatch: Any, capsys: Any) -> None:
    found = exemplary(helped(words, 80, monkeypatch, capsys))
    assert 2 <= len(found) <= 3
    for line in found:
        # Those of `hook` have one help, and so have `pins` and `allow`.
        assert line[: 1 + len(words)] == ["guardrails", *words] or line[1] in ("mcp", "hook")
        if words[0:1] == ("hook",):
            assert {*line[3:]} <= {*HOMES}
        elif words[0:1] == ("mcp",):
            assert line[2] in ("pins", "allow") or options_of(line[2:]).command
        else:
            parse(line)


@pytest.mark.system
def test_the_module_is_the_command_and_imports_nothing_of_the_working_folder(tmp_path: Path) -> None:
    for name in ("typer", "click"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')\n")
    for words, told in (["--version"], f"guardrails {__version__}\n"), (["run", "--help"], "Usage: guardrails run"):
        said = ran(sys.executable, "-m", "guardrails", *words, cwd=tmp_path)
        assert (said.returncode, said.stderr, told in said.stdout) == (0, "", True)
