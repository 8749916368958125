"""
Commands that run now, so that none outlives the process that started it.

A command runs in a thread of its own if its tool has a time limit; Ctrl-C does not reach that thread.
"""

import atexit
import threading

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache


_living: list[Callable[[], object]] = []
"""What ends each of them."""
_lock = threading.Lock()


@contextmanager
def lives(end: Callable[[], object]) -> Iterator[None]:
    """
    *end* is called if this process ends meanwhile.
    """
    _at_exit()
    with _lock:
        _living.append(end)
    try:
        yield
    finally:
        # Before its exit is collected: from then on its number may be that of another.
        with _lock:
            if end in _living:
                _living.remove(end)


def end_all() -> None:
    """
    End all that lives.
    """
    with _lock:
        for end in _living:
            end()
        _living.clear()


@lru_cache(maxsize=1)
def _at_exit() -> None:
    atexit.register(end_all)
