"""
The progress of `guardrails replay`, on stderr: one line that changes on a terminal, a line now and then elsewhere.
"""

import sys

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .printing import is_plain, printable
from .ticker import Ticker


if TYPE_CHECKING:
    from guardrails.offline.judge.files.progress import Progress


@contextmanager
def telling(*, quiet: bool) -> "Iterator[Callable[[Progress], object] | None]":
    """
    Returns a function that tells of progress; None if nobody wants to know.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty() and not is_plain():
        from rich.console import Console

        with Console(stderr=True).status("reading", spinner="line") as status:
            yield lambda progress: status.update(_said(progress))
    else:
        ticker = Ticker(quiet=False)

        def tell(progress: "Progress") -> None:
            if ticker.due():
                ticker.tell(_said(progress))

        yield tell


def _said(progress: "Progress") -> str:
    speed = progress.calls / progress.seconds if progress.seconds else 0
    file = printable(progress.file).replace("[", "(").replace("]", ")")
    said = f"file {progress.number:,} of {progress.files:,} ({file}): {progress.calls:,} calls, {speed:,.0f} a second"
    if progress.share is not None:
        said += f", {100 * progress.share:.0f} %"
    left = progress.left_s
    return said if left is None else f"{said}, {_span(left)} left"


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
