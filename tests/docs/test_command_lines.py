"""
Every command that a page prints exists: its program, its target or module, and each of its options.
"""

import io
import re
import shlex

from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import dropwhile
from pathlib import Path
from typing import Any

import typer

from guardrails.cli import DOORS, app
from tests.docs.pages import PAGES, ROOT, blocks
from tests.tables import table


SHELL = ("sh", "bash", "console", "cron")
TARGETS = set(re.findall(r"^    ([a-z]+)  ", (ROOT / "dev.py").read_text(encoding="utf-8"), re.MULTILINE))
ELSEWHERE = {
    "claude": "a coding CLI, run by tests/system/clis",
    "codex": "the same",
    "gemini": "the same",
    "echo": "the little test program of the pages of coding CLIs",
    "exit": "the same",
    "grep": "a program of the system",
    "pip": "the packages, by tests/release",
}
"""Programs of others that pages name, and who runs them."""


def commands(page: Path) -> Iterator[str]:
    for language, text, _ in blocks(page):
        if language in SHELL and not text.startswith("#!"):
            for line in text.replace("\\\n", " ").splitlines():
                if language != "console":
                    yield re.sub(r"^(?:[\d*]+ ){5}", "", line)
                elif line.startswith("$ "):
                    yield line[2:]


def parts(line: str) -> Iterator[list[str]]:
    """
    The commands of a line of shell, without comments and redirections.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.wordchars += "[]{},:$@!^%+"
    lexer.commenters = "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in {";", "|", "&&", "||"}:
            if words:
                yield words
            words = []
        else:
            words.append(word)


def without_redirections(words: list[str]) -> list[str]:
    for sign in (">", ">>", "<", ">&"):
        if sign in words:
            words = words[: words.index(sign)]
    return words[:-1] if words[-1].isdigit() and len(words) > 1 and words[-1] == "2" else words


def parsed(words: list[str]) -> None:
    """
    Hold the words after `guardrails` against its commands. Raises AssertionError for a command that
    is not there, and UsageError for an option.
    """
    if words[:1] in (["hook"], ["mcp"]):
        return by_its_help(*words)
    command: Any = typer.main.get_command(app)
    context = command.context_class(command, info_name="guardrails")
    while hasattr(command, "commands"):
        _, words, _ = command.make_parser(context).parse_args(list(words))
        if not words:
            return None
        found = command.get_command(context, words[0])
        assert found is not None, f"no command {words[0]}"
        context = command.context_class(found, parent=context, info_name=words[0])
        command, words = found, words[1:]
    command.make_parser(context).parse_args(list(words))
    return None


def by_its_help(name: str, *words: str) -> None:
    """
    Hold the words of a command with a parser of its own against the help of it.
    """
    own = words[: words.index("--")] if "--" in words else words
    options = {word.partition("=")[0] for word in own if word.startswith("--")}
    known = help_of(name, *[own[0] if own and own[0][:1] != "-" else ""])
    assert not options - known, options - known


@cache
def help_of(name: str, below: str) -> set[str]:
    """
    The options that the help of a command names, and of the command *below* it.
    """
    found: set[str] = set()
    for words in ([], [below] if below else []):
        said = io.StringIO()
        with redirect_stdout(said), suppress(SystemExit):
            import_module(DOORS[name][0]).main([*words, "--help"])
        found |= set(re.findall(r"--[a-z][a-z-]*", said.getvalue()))
    return found


def check(words: list[str]) -> None:
    words = list(dropwhile(re.compile(r"[A-Z_]+=").match, without_redirections(words)))
    program, rest = words[0].rpartition("/")[2], words[1:]
    if program == "guardrails":
        parsed(rest)
    elif program.startswith("python") and rest[0] == "-m":
        assert find_spec(rest[1]) is not None, f"no module {rest[1]}"
        if rest[1] == "pytest":
            # Files that the page itself has the reader write are run by the test of that page.
            assert all((ROOT / word).parent.is_dir() for word in rest[2:] if "/" in word)
    elif program.startswith("python") and rest[0] == "dev.py":
        assert len(rest) == 1 or rest[1] in TARGETS, f"no target {rest[1]}"
    elif not program.startswith("python"):
        assert program in ELSEWHERE, f"who runs `{program}`?"


@table("page", [page for page in PAGES if any(commands(page))])
def test_each_command_of_a_page_exists_with_its_options(page: Path) -> None:
    for line in commands(page):
        for words in parts(line):
            check(words)
