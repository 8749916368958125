"""
The progress of long reading, on stderr.
"""

import sys

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .printing import is_plain, printable
from .ticker import Ticker


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
