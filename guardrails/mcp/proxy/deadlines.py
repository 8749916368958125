"""
Calls functions when they are due, on a thread that exists once there is one to call.
"""

import heapq
import threading
import time
import weakref

from collections.abc import Callable
from typing import Any, Final


LEAST: Final = 64
"""Deadlines below which nobody looks whether they are still waited for."""


class Deadlines:
    """
    Tells those whose time is up, as long as they exist: nobody has to say that a call was answered.
    """

    def __init__(self) -> None:
        self._due: list[tuple[float, int, weakref.ref[Any], Callable[[Any], None]]] = []
        self._changed = threading.Condition()
        self._n = 0
        self._most = LEAST

    def add(self, seconds: float, call: Any, over: Callable[[Any], None]) -> None:
        """
        Call `over(call)` in *seconds*, from a thread of its own, if anybody still holds *call* then.
        """
        with self._changed:
            if len(self._due) >= self._most:
                # The limit of a call may be days, and most are answered at once.
                self._due = [one for one in self._due if one[2]() is not None]
                heapq.heapify(self._due)
                self._most = max(LEAST, 2 * len(self._due))
            self._n += 1
            heapq.heappush(self._due, (time.monotonic() + seconds, self._n, weakref.ref(call), over))
            if self._n == 1:
                threading.Thread(target=self._run, name="guardrails-time", daemon=True).start()
            elif self._due[0][1] == self._n:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    # In parts: no clock waits for weeks.
                    self._changed.wait(min(self._due[0][0] - time.monotonic(), 3600.0) if self._due else None)
                _, _, held, over = heapq.heappop(self._due)
            call = held()
            if call is not None:
                over(call)
            del call, over
