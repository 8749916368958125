"""
The writer's side of a queue: records become lines, lines are appended batch by batch, faults are said once.
"""

import errno
import logging
import os

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .append import append, open_to_append
from .base import Entry, Record, say
from .rotate import Moved, Rotation


BATCH_BYTES: Final = 64 * 2**10
"""One write: bounds the tail that a kill may take, and how long other processes wait for the file."""

REOPENED: Final = 100
"""How often a file is opened again that other processes rename meanwhile."""


class Writer:
    """
    Take records from *queue*, make them lines by *to_line*, and append those to *path*; for one thread at a time.

    The function *written_off* is told the size hints of records that no longer wait.
    """

    def __init__(
        self,
        path: Path,
        queue: deque[tuple[Entry, int]],
        to_line: Callable[[Record], bytes],
        written_off: Callable[[int], None],
        *,
        rotation: Rotation | None = None,
        durable: bool = False,
    ) -> None:
        self.written = self.failed = 0
        self.faults = 0
        """Attempts in a row that failed."""
        self.fd = -1
        """The file while it is open. Known to a forked child, which closes its copy: a killed parent's lock would live
        as long as the copy."""
        self.batch = b""
        """Lines that are not in the file yet."""
        self._batch_hint = 0
        self._gathered: list[bytes] = []
        self._rotation = rotation
        self._durable = durable
        self._path = path
        self._queue = queue
        self._to_line = to_line
        self._written_off = written_off

    def write(self) -> bool:
        """
        Write the records that are queued by now. Returns False if a fault stopped it.
        """
        left = len(self._queue)
        error = None
        while error is None and (left or self.batch or self._gathered):
            if not self.batch:
                left -= self._gather(left)

            error = self._append()

        self._report(error)
        return error is None

    def give_up(self) -> int:
        """
        Drop the records that wait, counted as failed. Returns their number.
        """
        lost = self._waiting()
        self.batch = b""
        self._queue.clear()
        self.failed += lost
        return lost

    def _waiting(self) -> int:
        return self.batch.count(b"\n") + len(self._queue)

    def _gather(self, most: int) -> int:
        # A signal may interrupt this where no thread is there for it: a record is taken from the queue once it is a line, and a
        # line from the batch once it is written. Then it is there twice at worst.
        lines, queue = self._gathered, self._queue
        size = taken = 0
        while taken < most and size < BATCH_BYTES:
            record, size_hint = queue[0]
            try:
                line = self._to_line(record() if callable(record) else record)
            except Exception as error:  # noqa: BLE001  such as a MemoryError: the thread must live
                if not self.failed:
                    say(logging.WARNING, "a record for `%s` could not be made: `%s`", self._path, type(error).__name__)
                self.failed += 1
            else:
                lines.append(line)
                size += len(line)
            queue.popleft()
            taken += 1
            self._batch_hint += size_hint

        self.batch = b"".join(lines)
        self._gathered = []
        return taken

    def _append(self) -> OSError | None:
        done, error = 0, None
        try:
            for _ in range(REOPENED):
                try:
                    done, error = self._append_once()
                    break
                except Moved:
                    continue
            else:
                error = OSError(errno.EAGAIN, "renamed again and again while it was opened")
        except OSError as raised:
            error = raised

        self.written += self.batch.count(b"\n", 0, done)
        self.batch = self.batch[done:]
        if not self.batch:
            self._written_off(self._batch_hint)
            self._batch_hint = 0

        return error

    def _append_once(self) -> tuple[int, OSError | None]:
        self.fd = open_to_append(self._path)
        try:
            return append(self.fd, self.batch, self._path, self._rotation, durable=self._durable)
        finally:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def _report(self, error: OSError | None) -> None:
        faults, self.faults = self.faults, self.faults + 1 if error else 0
        if error and not faults:
            why = error.strerror or error
            say(logging.WARNING, "records cannot be written to `%s`: %s (%d waiting)", self._path, why, self._waiting())
        elif faults and not error:
            say(logging.INFO, "records are written to `%s` again, after %d attempts", self._path, faults)
