"""
A line of progress on stderr: one that changes on a terminal, one now and then elsewhere; short work prints none.
"""

import sys
import time

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

from .printing import is_plain, printable


EVERY_S: Final = 5.0
"""Seconds between two plain lines."""
CHANGES_S: Final = 0.2
"""The same of a line that changes."""


class Ticker:
    """
    Prints the line of progress when it is time for it.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._told = time.monotonic()

    def due(self) -> bool:
        """
        Whether it is time for a line; then the next one is due later.
        """
        now = time.monotonic()
        if self._quiet or now - self._told < (CHANGES_S if sys.stderr.isatty() and not is_plain() else EVERY_S):
            return False
        self._told = now
        return True

    def tell(self, line: str) -> None:
        """
        Print *line*, on a terminal in place of the latest.
        """
        terminal = sys.stderr.isatty() and not is_plain()
        typer.echo(f"\r\x1b[K{line}" if terminal else line, err=True, nl=not terminal)


@contextmanager
def telling(*, quiet: bool) -> Iterator[Callable[[str], object] | None]:
    """
    Returns a function that shows a line of progress when it is time for one; None if nobody wants to know.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty() and not is_plain():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("reading", spinner="line") as status:
            yield lambda line: status.update(escape(printable(line)))
    else:
        ticker = Ticker(quiet=False)

        def tell(line: str) -> None:
            if ticker.due():
                ticker.tell(printable(line))

        yield tell
