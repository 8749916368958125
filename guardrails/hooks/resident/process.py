"""
The resident process: it listens, answers each request on a thread of its own, and leaves when nobody asks any more.
"""

import logging
import os
import socket
import sys
import threading
import time

from contextlib import suppress
from typing import Final

from guardrails.core.values.logs import log
from guardrails.hooks.options import Options
from guardrails.hooks.respond import respond

from .folder import is_own, opened
from .start import BACKLOG, say
from .watch import Watch
from .wire import REFUSED, WORKING, WireError, answered, received


IDLE_S: Final = 600.0
"""Seconds without a request after which the process leaves: people read and answer within minutes, and a start costs 0.2 s."""
TICK_S: Final = 0.5
"""Seconds between two signs of life to those that wait."""
LOOK_S: Final = 60.0
"""Seconds between two looks whether the socket is still there; an idle process wakes no oftener."""
PART_S: Final = 5.0
"""Seconds that a part of a request, or of an answer, may take."""
MAX_TOLD: Final = 1 << 16
"""Bytes of the log that an answer takes along."""
LEAVE_S: Final = 30.0
"""Seconds that a process which leaves gives those that are still answered."""


class _Talk:
    """
    One connection, whose bytes come from two threads: the answer's, and that of the signs of life.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        self._over = False

    def tick(self) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._over:
                with suppress(OSError):
                    self.connection.send(WORKING)
        finally:
            self._lock.release()

    def end(self, said: bytes) -> None:
        with self._lock:
            self._over = True
            self.connection.sendall(said)

    def gone(self) -> bool:
        """
        Returns whether the asker has given up: then it has answered by itself.
        """
        with self._lock:
            self.connection.settimeout(0.0)
            try:
                return self.connection.recv(1, socket.MSG_PEEK) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
            finally:
                self.connection.settimeout(PART_S)


class _Told(logging.Handler):
    """
    Keeps what is logged for the one whose event it is of: this process has nowhere to write it.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._own = threading.local()

    def begin(self) -> list[bytes]:
        """
        The lines that this thread logs from here on.
        """
        lines: list[bytes] = []
        self._own.lines = lines
        return lines

    def emit(self, record: logging.LogRecord) -> None:
        lines = getattr(self._own, "lines", None)
        if lines is not None:
            lines.append(f"{record.getMessage()}\n".encode("utf-8", "replace"))


class Resident:
    """
    Answers what comes to *listener*, the socket *name* in *folder*, for as long as it holds *lock*.
    """

    def __init__(
        self, lock: int, listener: socket.socket, folder: int, name: str, identity: str, *, idle_s: float = IDLE_S
    ) -> None:
        self._lock = lock
        self._listener = listener
        self._folder = folder
        self._name = f"{name}.sock"
        self._identity = identity
        self._idle_s = idle_s
        self._talks: set[_Talk] = set()
        self._leaving = threading.Event()
        self._leave_lock = threading.Lock()
        self._watch = Watch()
        self._told = _Told()
        log.addHandler(self._told)
        self._own = os.stat(self._name, dir_fd=folder).st_ino

    def run(self) -> None:
        """
        Answer until nobody has asked for a while, or code or policy are others; all that were accepted are answered.
        """
        asked = time.monotonic()
        while not self._leaving.is_set():
            self._listener.settimeout(TICK_S if self._talks else min(LOOK_S, self._idle_s))
            if self._accepted():
                asked = time.monotonic()
            for talk in list(self._talks):
                talk.tick()
            idle = not self._talks and time.monotonic() - asked >= self._idle_s
            if idle or not self._there():
                self._leave()
        self._listener.settimeout(0.0)
        while self._accepted():
            pass
        self._listener.close()
        until = time.monotonic() + LEAVE_S
        while self._talks and time.monotonic() < until:
            time.sleep(TICK_S / 10)
            for talk in list(self._talks):
                talk.tick()
        log.removeHandler(self._told)
        os.close(self._folder)

    def _there(self) -> bool:
        try:
            return os.stat(self._name, dir_fd=self._folder).st_ino == self._own
        except OSError:
            return False

    def _accepted(self) -> bool:
        try:
            connection, _ = self._listener.accept()
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            time.sleep(TICK_S / 10)  # too many files are open: some are closed soon
            return False
        talk = _Talk(connection)
        self._talks.add(talk)
        threading.Thread(target=self._serve, args=(talk,), daemon=True).start()
        return True

    def _leave(self) -> None:
        """
        Give up the name, so that another may start; who connected before is still answered.
        """
        with self._leave_lock:
            if self._leaving.is_set():
                return
            if self._there():
                with suppress(OSError):
                    os.unlink(self._name, dir_fd=self._folder)
            os.close(self._lock)
            self._leaving.set()

    def _serve(self, talk: _Talk) -> None:
        try:
            talk.connection.settimeout(PART_S)
            if is_own(talk.connection):
                self._answer(talk)
        except (OSError, WireError):
            pass
        finally:
            self._talks.discard(talk)
            talk.connection.close()

    def _answer(self, talk: _Talk) -> None:
        (identity, once, *words), data = received(talk.connection)
        once, _, trace = once.partition(" ")
        options = Options.of(words)
        if identity != self._identity:
            talk.end(REFUSED)
        elif self._watch.changed(options):
            # First the name, so that the one who is refused can start the next.
            self._leave()
            talk.end(REFUSED)
        elif not talk.gone():
            said = self._told.begin()
            answer = respond(data, options, once=once, trace=trace)
            self._watch.used(options)
            talk.end(answered(answer, b"".join(said)[:MAX_TOLD]))


def main(lock: str, listener: str, path: str, name: str, identity: str) -> None:
    """
    The process that `start` starts: it takes over the *lock* and the *listener* by their numbers, and nothing else.
    """
    os.umask(0o077)
    with suppress(OSError):
        os.setsid()
    _close_all_but({0, 1, 2, int(lock), int(listener)})
    folder = opened(path)
    own = socket.socket(fileno=int(listener))
    # Once more, so that askers see this process's user.
    own.listen(BACKLOG)
    say(int(lock), b"%d" % os.getpid())
    Resident(int(lock), own, folder, name, identity).run()
    sys.exit(0)


def _close_all_but(kept: set[int]) -> None:
    """
    Close what came along from the client that started the first hook: a pipe of it would stay open as long as this process.
    """
    for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208
        if number not in kept:
            with suppress(OSError):
                os.close(number)
