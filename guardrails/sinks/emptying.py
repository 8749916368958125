"""
A queue that a thread empties. The thread starts with the first item, writes batch by batch, and ends if none comes.
"""

import sys
import threading

from collections import deque
from contextlib import suppress
from typing import Final

from .base import Entry
from .exits import flush_in_pool_process
from .pressure import Pressure
from .writer import BATCH_BYTES, Writer


MIN_BACKOFF_S: Final = 0.01
MAX_BACKOFF_S: Final = 5.0
IDLE_S: Final = 10.0
"""How long a thread without work stays; the next record starts another, which takes about 0.1 ms."""
IDLE_AFTER_FLUSH_S: Final = 0.1
"""The same after a flush, which is what a closed session leaves behind."""


class Emptying:
    """
    The thread of a sink, and the queue that it empties by a writer.
    """

    blocks: bool
    _interval: float
    _closed: bool
    _queue: deque[tuple[Entry, int]]
    _writer: Writer
    _pressure: Pressure

    def _say_dropped(self) -> None:
        """
        Say what was not taken.
        """

    def _begin_thread(self) -> None:
        self._queued = 0
        self._ring_at = 0
        self._flushes: deque[_Flush] = deque()
        self._thread: threading.Thread | None = None
        self._idle_s = IDLE_S
        self._flushed_at_exit = False
        self._bell = threading.Lock()
        self._bell.acquire()
        # Reentrant: a log or signal handler may come back while this thread holds them.
        self._starting, self._writing = threading.RLock(), threading.RLock()

    def flush(self, timeout: float | None = None) -> bool:
        """
        Wait up to *timeout* seconds until all records that were put are in the file. Returns False if they are not.

        A fault ends the wait at once. In the writer's own thread (a finaliser may run there) the answer is False.
        """
        if self._thread is threading.current_thread():
            return False

        flush = _Flush()
        self._flushes.append(flush)
        if self._thread is not None or self._queue:
            self._ring()

        if self._thread is None:
            with self._writing:
                return self._write_queued()

        return flush.wait(timeout) and flush.written

    def _ring(self) -> None:
        if self._thread is None:
            self._start()
        elif self._bell.locked():
            # Somebody else may be quicker.
            with suppress(RuntimeError):
                self._bell.release()

    def _start(self) -> None:
        if self._closed:
            return
        with self._starting:
            if self._thread is not None:
                return
            thread = self._thread = threading.Thread(target=self._run, name="guardrails-records", daemon=True)
            try:
                thread.start()
                if not self._flushed_at_exit:
                    self._flushed_at_exit = True
                    flush_in_pool_process(self)  # type: ignore[arg-type]
            except BaseException as error:
                # There is no thread: none to be had, the interpreter goes down, or a signal came first. The next put
                # tries again, flush and close write.
                if thread.ident is None:
                    self._leave()
                if not isinstance(error, RuntimeError):
                    raise

    def _run(self) -> None:
        if self._thread is not threading.current_thread():
            return  # A signal broke its start off, and nobody waits for it.
        idle = False
        try:
            idle = self._write_until_idle()
        finally:
            if idle:
                self._retire()
            else:
                self._leave()

    def _write_until_idle(self) -> bool:
        """
        Write what comes; True once nothing has come for a while, False after `close`.
        """
        while True:
            self._ring_at = 0
            if not (self._queue or self._writer.batch or self._flushes or self._closed):
                self._queued = 0
                if not self._bell.acquire(timeout=self._idle_s):
                    return True

            if not self._writer.batch:
                self._wait(BATCH_BYTES, self._interval)

            with self._writing:
                whole = self._write_queued()

            if self._closed:
                return False

            if not whole:
                pause = max(self._interval, MIN_BACKOFF_S) * 2 ** min(self._writer.faults, 16)
                self._wait(sys.maxsize, min(pause, MAX_BACKOFF_S))

    def _retire(self) -> None:
        self._thread = None
        # Who came until now has rung for this thread; who comes from here on starts the next.
        if self._queue or self._flushes:
            self._ring()

    def _wait(self, ring_at: int, seconds: float) -> None:
        self._ring_at = ring_at
        # An earlier ring must not end this wait. Who rings from here on has left word first: it is looked for below.
        self._bell.acquire(blocking=False)
        if not (self._flushes or self._closed or self._queued >= ring_at):
            self._bell.acquire(timeout=seconds)

    def _leave(self) -> None:
        self._thread = None
        # Without a thread nobody answers them.
        while self._flushes:
            self._flushes.popleft().set()

    def _write_queued(self) -> bool:
        """
        Write the lines queued by now, and answer the flushes that came before. Returns False if a fault stopped it.
        """
        flushes = [self._flushes.popleft() for _ in range(len(self._flushes))]
        if not self.blocks:
            self._pressure.taken()
        whole = self._writer.write()
        self._idle_s = IDLE_AFTER_FLUSH_S if flushes else IDLE_S
        self._say_dropped()
        for flush in flushes:
            flush.written = whole
            flush.set()

        return whole

    def _written_off(self, size_hints: int) -> None:
        self._queued -= size_hints
        self._pressure.wrote()


class _Flush:
    """
    Who waits for what is queued. No Event: a signal that interrupts its wait may leave it locked, and the thread for ever in `set`.
    """

    written = False

    def __init__(self) -> None:
        self._done = threading.Lock()
        self._done.acquire()

    def set(self) -> None:
        self._done.release()

    def wait(self, timeout: float | None) -> bool:
        return self._done.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX))
