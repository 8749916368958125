"""
Processes that take turns at a file, in the order in which they came.

SQLite lets whoever asks at the right moment have the file next: a process that has just had it, mostly, while others sleep. So
those that find it taken stand in line: at places of which each is a lock on one byte of a file beside it. Who stands at a place
waits for the one before it, lets go of its own once it has that, and asks for the file at the place 0. The system lets go of all
locks of a process that ends, however it ends. It is only about the order: that one at a time writes, SQLite sees to.
"""

import os
import time

from contextlib import suppress
from typing import Final

from .folders import make_private


try:
    import fcntl
except ImportError:  # Windows has none: the order is left to SQLite there.
    fcntl = None  # type: ignore[assignment]

PLACES: Final = 16
"""Processes that keep their order; more of them race for the last place."""
PAUSE_S: Final = 0.000_1
"""Between two looks at the place before: about as long as one step has the file."""


class Line:
    """
    The line at the file *path*, kept in a file beside it that ends in `-line` (0600).
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}-line"
        self._file = -1

    def wait(self, until: float) -> bool:
        """
        Stand in line until it is this process's turn. Returns False if it was not before *until* (`time.monotonic`).

        The next one's turn comes with `leave`.
        """
        if fcntl is None or not self._opened():
            return True
        place = 1 if self._take(1) else PLACES
        if place == PLACES and not self._come(PLACES, until):
            return False
        while place:
            came = self._come(place - 1, until)
            self._let_go(place)
            if not came:
                return False
            place -= 1
        return True

    def leave(self) -> None:
        """
        Let the next one have its turn.
        """
        if self._file >= 0:
            self._let_go(0)

    def close(self) -> None:
        """
        Close the file; the next `wait` opens it again.
        """
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _opened(self) -> bool:
        if self._file < 0:
            # A folder that has become read-only is a fault of the store, which says so better.
            with suppress(OSError):
                make_private(self._path)
                self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        return self._file >= 0

    def _come(self, place: int, until: float) -> bool:
        while not self._take(place):
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_S * (1 + place))
        return True

    def _take(self, place: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _let_go(self, place: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)
