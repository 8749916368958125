"""
What is due later, told in time by a thread that exists once there is any.
"""

import heapq
import threading
import time

from collections.abc import Callable
from typing import Generic, TypeVar


T = TypeVar("T")


class Deadlines(Generic[T]):
    """
    Calls *over* with what was added, when its time is up.
    """

    def __init__(self, over: Callable[[T], None]) -> None:
        self._over = over
        self._due: list[tuple[float, int, T]] = []
        self._changed = threading.Condition()
        self._n = 0

    def add(self, seconds: float, what: T) -> None:
        """
        Let *what* be over in *seconds*.
        """
        with self._changed:
            self._n += 1
            heapq.heappush(self._due, (time.monotonic() + seconds, self._n, what))
            if self._n == 1:
                threading.Thread(target=self._run, name="guardrails-time", daemon=True).start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    # In parts: no clock waits for weeks.
                    self._changed.wait(min(self._due[0][0] - time.monotonic(), 3600.0) if self._due else None)
                _, _, what = heapq.heappop(self._due)
            self._over(what)
