"""
What is due later, told in time by a thread that exists once there is any.
"""

import heapq
import threading
import time

from collections.abc import Callable


class Deadlines:
    """
    Calls what was added when its time is up.
    """

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        self._n = 0

    def add(self, seconds: float, over: Callable[[], None]) -> None:
        """
        Call *over* in *seconds*, from a thread of its own.
        """
        with self._changed:
            self._n += 1
            heapq.heappush(self._due, (time.monotonic() + seconds, self._n, over))
            if self._n == 1:
                threading.Thread(target=self._run, name="guardrails-time", daemon=True).start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    # In parts: no clock waits for weeks.
                    self._changed.wait(min(self._due[0][0] - time.monotonic(), 3600.0) if self._due else None)
                _, _, over = heapq.heappop(self._due)
            over()
