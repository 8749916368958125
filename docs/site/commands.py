"""
The page of all commands: the help of each, as it is printed at 100 columns.
"""

import os
import subprocess
import sys

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from typer.main import get_command


@cache
def commands() -> str:
    """
    The page, as Markdown.
    """
    from guardrails.cli import app

    text = "# Commands\n\nThe texts that `guardrails --help` and the help of each command print.\n"
    every = [(), *named(get_command(app))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for words, said in zip(every, pool.map(helped, every), strict=True):
            text += f"\n## {' '.join(('guardrails', *words))}\n\n```text\n{said}\n```\n"
    return text


def named(group: Any, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """
    The words of every command of *group*, and of the groups in it.
    """
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        found.append((*before, name))
        if hasattr(command, "list_commands"):
            found += named(command, (*before, name))
    return found


def helped(words: tuple[str, ...]) -> str:
    """
    Returns the help that the command prints.
    """
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "guardrails", *words, "--help"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
