"""
Every command that a page prints exists: its program, its target or module, and each of its options.
"""

import re
import shlex

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import dropwhile, takewhile
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, blocks
from tests.tables import table


SHELL = ("sh", "bash", "console", "cron")
TARGETS = set(re.findall(r"^    ([a-z]+)  ", (ROOT / "dev.py").read_text(encoding="utf-8"), re.MULTILINE))
PUBLIC = set((ROOT / "tests/release/surface.txt").read_text(encoding="utf-8").splitlines())
"""Each command with its options is a line of it."""
ELSEWHERE = ("claude", "codex", "gemini", "echo", "exit", "grep", "pip")
"""Programs of others that pages name."""


def commands(page: Path) -> Iterator[list[str]]:
    """
    The words of each command of *page*, without comments and redirections.
    """
    for language, text, _ in blocks(page):
        if language not in SHELL or text.startswith("#!"):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            if language == "console" and not line.startswith("$ "):
                continue
            lexer = shlex.shlex(re.sub(r"^(\$ |(?:[\d*]+ ){5})", "", line), posix=True, punctuation_chars=True)
            lexer.wordchars += "[]{},:$@!^%+"
            words: list[str] = []
            for word in [*lexer, ";"]:
                if word not in {";", "|", "&&", "||"}:
                    words.append(word)
                    continue
                if words:
                    yield re.split(r" 2?>>?&? | < ", " ".join(words))[0].split()
                words = []


def check(words: list[str]) -> None:
    words = list(dropwhile(re.compile(r"[A-Z_]+=").match, words))
    program, rest = words[0].rpartition("/")[2], words[1:]
    if program == "guardrails":
        own = rest[: rest.index("--")] if "--" in rest else rest
        names = [*takewhile(lambda word: not word.startswith("-"), own[:2])]
        named = [name for name in (" ".join(names), *names[:1]) if f"command guardrails {name}" in PUBLIC]
        assert named or own[0].startswith("--"), f"no command {own[0]}"
        options = {word.partition("=")[0] for word in own if word.startswith("-")} - {"--help", "--version"}
        known = tuple(f"command guardrails {name} " for name in named)
        assert options <= {line.rpartition(" ")[2] for line in PUBLIC if line.startswith(known)}
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
    for words in commands(page):
        check(words)
