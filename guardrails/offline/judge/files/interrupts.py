"""
Ctrl-C as an end between two calls.
"""

import signal
import threading

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[list[bool]]:
    """
    A list that Ctrl-C fills, so that the work ends between two calls; a second Ctrl-C is as ever.
    """
    asked: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    before = signal.getsignal(signal.SIGINT)

    def note(_signal: int, _frame: FrameType | None) -> None:
        asked.append(True)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
