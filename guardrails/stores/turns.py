"""
Threads of one process that take turns at the keys of a store, in the order in which they came.
"""

import threading
import time

from collections import deque
from collections.abc import Iterable
from typing import Final


class Turns:
    """
    One thread at a time has a key. A lock of Python would not do: who gives it back and asks again at once mostly gets it,
    while others starve.
    """

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._waiting: Final[dict[str, deque[threading.Lock]]] = {}
        """The first of each is who has the key."""

    def ticket(self) -> threading.Lock:
        """
        Returns a ticket that stands for a thread in the queues, for one `wait` and `leave`.
        """
        ticket = threading.Lock()
        ticket.acquire()
        return ticket

    def wait(self, keys: Iterable[str], ticket: threading.Lock, until: float) -> bool:
        """
        Wait for each of *keys*, in an order that all threads share. Returns whether they were taken before *until*
        (`time.monotonic`).

        The thread must call `leave` afterwards in every case.
        """
        for key in sorted(keys):
            with self._lock:
                queue = self._waiting.setdefault(key, deque())
                queue.append(ticket)
                if queue[0] is ticket:
                    continue
            while True:
                if not ticket.acquire(timeout=max(0.0, until - time.monotonic())):
                    return False
                with self._lock:
                    if self._waiting[key][0] is ticket:
                        break
        return True

    def leave(self, keys: Iterable[str], ticket: threading.Lock) -> None:
        """
        Let the next ones have *keys*. Called again after an interruption, it ends the work that was begun.
        """
        for key in keys:
            with self._lock:
                queue = self._waiting.get(key)
                if queue is None:
                    continue
                if ticket in queue:
                    queue.remove(ticket)
                if not queue:
                    del self._waiting[key]
                elif queue[0].locked():
                    queue[0].release()
