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
        told = time.monotonic()

        def tell(line: str) -> None:
            nonlocal told
            if time.monotonic() - told >= EVERY_S:
                told = time.monotonic()
                typer.echo(printable(line), err=True)

        yield tell
