"""
Work that no call waits for: an exporter that hangs holds up one thread of its own, and nobody else.
"""

import atexit
import os
import threading
import weakref

from collections import deque
from collections.abc import Callable
from typing import Final

from guardrails.core.values.logs import warn_once


MAX_WAITING: Final = 4_096
"""Calls whose spans wait to be ended; those of further ones are dropped, and counted."""
BATCH_S: Final = 0.02
"""For calls to gather in, so that the thread wakes up seldom."""
EXIT_S: Final = 2.0
"""What the end of the process waits for at most."""


class Worker:
    """
    Does what is `put`, one after the other, in a daemon thread that is started when there is something to do.
    """

    def __init__(self) -> None:
        self.dropped = 0
        """What there was no room for."""
        self._begin()
        _live.add(self)

    def put(self, work: Callable[[], None]) -> None:
        """
        Do *work* soon; never waits, never raises for what the work does.
        """
        if len(self._queue) >= MAX_WAITING:
            self.dropped += 1
            warn_once("otel full", "telemetry is dropped: %d calls wait for an exporter or an SDK", MAX_WAITING)
            return
        self._queue.append(work)
        if not self._wake.is_set():
            self._wake.set()
            self._start()

    def flush(self, timeout: float | None = None) -> bool:
        """
        Wait up to *timeout* seconds until all that was put is done. Returns whether it is.
        """
        if not self._queue and not self._busy:
            return True
        done = threading.Event()
        self._queue.append(done.set)
        self._hurry.set()
        self._wake.set()
        return self._start() and done.wait(timeout)

    def begin_in_child(self) -> None:
        """
        Begin anew in a forked child, which has no such thread; what waits is the parent's.
        """
        self._begin()

    def _begin(self) -> None:
        self._queue: deque[Callable[[], None]] = deque()
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._busy = False

    def _start(self) -> bool:
        """
        Returns whether there is a thread now: a process that ends, or has too many, may start none.
        """
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="guardrails-otel", daemon=True)
                    try:
                        thread.start()
                    except RuntimeError as error:
                        # Asked again by what is put next.
                        self._wake.clear()
                        warn_once("otel thread", "telemetry waits: %r", error)
                        return False
                    self._thread = thread
        return True

    def _run(self) -> None:
        queue, wake, hurry = self._queue, self._wake, self._hurry
        while True:
            wake.wait()
            hurry.wait(BATCH_S)
            hurry.clear()
            self._busy = True
            wake.clear()
            while queue:
                try:
                    queue.popleft()()
                except Exception as error:  # noqa: BLE001  whatever an SDK raises
                    warn_once("otel worker", "telemetry failed: %r", error)
            self._busy = False


_live: "weakref.WeakSet[Worker]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for worker in list(_live):
        worker.begin_in_child()


def flush_all() -> None:
    """
    End the spans of all calls that are over, within `EXIT_S`.
    """
    for worker in list(_live):
        worker.flush(EXIT_S)


_at_exit = threading.Event()


def flush_at_exit() -> None:
    """
    End the spans of the last calls before the process does. To be said late: an SDK shuts down what it has by then, and what
    was said last is done first.
    """
    if not _at_exit.is_set():
        _at_exit.set()
        atexit.register(flush_all)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
