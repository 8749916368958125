"""
Bounds the records that a kill may take: callers that put them faster than they are written wait.
"""

import threading
import time

from collections.abc import Callable
from contextlib import suppress
from typing import Final


LOOK: Final = 64
"""Records after which a caller looks how old the oldest that waits may be: a clock for each would cost more than all the rest."""
WAIT_S: Final = 1.0
"""The longest that a caller waits for room: as long as a writer waits for a file that another process has locked."""
ROUND_S: Final = 0.02


class Pressure:
    """
    Callers wait while *most* records do, or one that may be older than *late* seconds.
    """

    def __init__(self, most: int, late: float) -> None:
        self._most = max(1, most)
        self._late = late
        # Open while there is room. No Event: a signal that interrupts its wait may leave it locked, and the thread for ever in `set`.
        self._room = threading.Lock()
        self._pressed = False
        self._taken_s = time.monotonic()
        self.look_at = min(LOOK, self._most)
        """How many wait when a caller is to ask whether it is `full`."""

    def taken(self) -> None:
        """
        Say that records which wait from now on were put from now on.
        """
        self._taken_s = time.monotonic()
        self.look_at = min(LOOK, self._most)

    def wrote(self) -> None:
        """
        Say that some of it is written.
        """
        if self._pressed:
            self._pressed = False
            self._open()

    def full(self, waiting: int) -> bool:
        """
        Returns whether there is no room while so many are *waiting*.
        """
        if waiting >= self._most:
            return True
        if waiting >= LOOK and time.monotonic() - self._taken_s >= self._late:
            return True
        self.look_at = min(waiting + LOOK, self._most)
        return False

    def wait(self, backs_up: Callable[[], bool]) -> None:
        """
        Wait as long as it *backs_up*, at most a second.
        """
        until = time.monotonic() + WAIT_S
        while backs_up() and time.monotonic() < until:
            self._room.acquire(blocking=False)
            self._pressed = True
            if self._room.acquire(timeout=ROUND_S):
                self._open()

    def _open(self) -> None:
        with suppress(RuntimeError):
            self._room.release()
