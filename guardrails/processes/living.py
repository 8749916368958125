"""
Commands that run now, so that none outlives the process that started it.

A command runs in a thread of its own where its tool has a time limit; Ctrl-C does not reach that thread.
"""

import atexit
import os
import signal
import threading

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache


_living: dict[int, Callable[[], object]] = {}
"""By the number of its process group: what ends those that left the group."""
_lock = threading.Lock()


@contextmanager
def lives(group: int, end_strays: Callable[[], object]) -> Iterator[None]:
    """
    The processes of *group* are killed if this process ends meanwhile, and what *end_strays* kills.
    """
    _at_exit()
    with _lock:
        _living[group] = end_strays
    try:
        yield
    finally:
        # Before its exit is collected: from then on its number may be that of another.
        with _lock:
            _living.pop(group, None)


def end_all() -> None:
    """
    Kill all that lives.
    """
    with _lock:
        for group in _living:
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        strays = list(_living.values())
        _living.clear()
    for end in strays:
        end()


@lru_cache(maxsize=1)
def _at_exit() -> None:
    atexit.register(end_all)
