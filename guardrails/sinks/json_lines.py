"""
Append records to a file off the hot path: the queue, the thread that empties it, and its life cycle.
"""

import logging
import os
import threading

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Literal, Self

from guardrails.core.values.units import duration_ms

from .base import Entry, say
from .emptying import Emptying
from .erase import Arguments, Results, parse_path, withheld
from .exits import keep_track
from .line import to_line
from .pressure import Pressure
from .rotate import Rotation
from .writer import Writer


MAX_QUEUED_BYTES: Final = 64 * 2**20
FLUSH_INTERVAL_MS: Final = 50
MAX_LINES: Final = 1_000
DURABLE_S: Final = 10.0
"""The longest that a call waits for the disk."""
Dropped = Literal["full", "closed"]


class JsonLines(Emptying):
    """
    Append records to the file *path*, from a daemon thread. It starts with the first record, ends if no record comes
    for a while, and starts again with the next.

    `kill -9` takes the records that are not in the file yet. They are at most *max_lines* records, of the latest two
    *flush_interval_ms*, beside the batch that is being written (64 KiB). A caller that puts more than those, or
    than *max_queued_bytes* by their size hints, waits a second at most, until the thread has caught up. If *durable*,
    `put` returns once its record is on the disk (fsync, one for all that wait). The answer of a step is then recorded,
    even if the power fails. Callers do not wait only while the file is faulty. Records then wait in memory, up to
    *max_queued_bytes*; beyond it they are dropped and counted, and the log says so once.

    The file is rotated before it grows beyond *rotate_bytes*, and once its first record is older than *rotate_after*
    (seconds, or `1d`). The next process that appends renames it to `calls.000001.jsonl`. The latest *keep* of the
    rotated files stay, or all.

    The paths of *redact* name values to erase, dotted from the top of the record. Each segment is a glob (`*`, `?`,
    `[a-z]`, blind to case) for one key or list index. The segment `**` stands for any number of them. The line lists
    the erased paths in `erased`. An element of a list becomes null. If a path leads into `arguments` or `result` and
    that is bare text, all of it is erased. The settings *arguments* and *results* say how much of those two is written:
    "full", "hash" (only their hashes), "off" (nothing).

    Erased values of `arguments` become `[erased]` in the messages of the call's lines that repeat them
    (`error_message`, `problems`, `guard_errors`). The module `repeats` says which repetitions are found. The whole
    message is erased if nobody can say what it may repeat, since the arguments were bare text or could not be signed. A
    message may still repeat a `result`, if results are kept: name it by a path of its own.

    A value at the top of the record may be a function without parameters, called in the thread. A function in the
    arguments is the caller's. The values of `arguments` and `result` may be JSON already, as `orjson.Fragment` or
    bytes.

    A missing folder is made, and a new file is its owner's only (0600). A torn line that a killed process or a full
    disk left is ended before the next. A fault is logged once, retried with growing pauses until it is over, and its
    end is logged too. Meanwhile records wait in the queue. Records that cannot be written at `close` count as failed. A
    forked child starts empty, with its own thread and counts. Raises ValueError for a setting that is not valid.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        max_lines: int = MAX_LINES,
        flush_interval_ms: float = FLUSH_INTERVAL_MS,
        durable: bool = False,
        rotate_bytes: int | None = None,
        rotate_after: float | str | None = None,
        keep: int | None = None,
        redact: tuple[str, ...] = (),
        arguments: Arguments = "full",
        results: Results = "hash",
    ) -> None:
        # A chdir must not move the file.
        self.path = Path(path).absolute()
        self._max_queued = max_queued_bytes
        self._interval = min(max(flush_interval_ms, 0) / 1000, threading.TIMEOUT_MAX)
        self._max_lines = max_lines
        self.blocks = durable
        """A `put` waits for the disk: asynchronous sessions hand over in a thread."""
        if keep is not None and keep < 1:
            raise ValueError(f"`keep` is how many rotated files stay, at least 1, not {keep}")
        if rotate_bytes is not None and rotate_bytes < 1:
            raise ValueError(f"`rotate_bytes` is a number of bytes, at least 1, not {rotate_bytes}")
        age = None if rotate_after is None else duration_ms(rotate_after) / 1000
        self._rotation = Rotation(rotate_bytes, age, keep)
        self._to_line = partial(
            to_line,
            withheld=withheld("arguments", arguments) | withheld("result", results),
            paths=tuple(parse_path(text) for text in ((redact,) if isinstance(redact, str) else redact)),
        )
        self._closed = False
        self._begin()
        keep_track(self)

    @property
    def written(self) -> int:
        return self._writer.written

    @property
    def failed(self) -> int:
        return self._writer.failed

    @property
    def dropped(self) -> int:
        return sum(self.dropped_by.values())

    def _begin(self) -> None:
        self.dropped_by: dict[Dropped, int] = {"full": 0, "closed": 0}
        """How many records were not taken, by why: too many waited, or the sink was closed."""
        self._said_dropped: set[Dropped] = set()
        self.undurable = 0
        """Calls of `put` that went on before their record was on the disk, as the file was faulty."""
        self._queue = deque()
        rotation, durable = self._rotation, self.blocks
        self._writer = Writer(
            self.path, self._queue, self._to_line, self._written_off, rotation=rotation, durable=durable
        )
        self._pressure = Pressure(self._max_lines, 2 * self._interval)
        if self.blocks:
            self._pressure.look_at = 0
        # Reentrant, as `_writing`.
        self._counting = threading.RLock()
        self._begin_thread()

    def put(self, record: Entry, size_hint: int) -> None:
        queued = self._queued + size_hint
        if queued > self._max_queued or self._closed:
            self._wait_for(size_hint)
            queued = self._queued + size_hint
            if queued > self._max_queued or self._closed:
                self._drop("closed" if self._closed else "full")
                return

        # No lock: CPython does not switch threads between the read above and this write. Where it did, the sum would
        # be off by one record until the queue is next empty.
        self._queued = queued
        self._queue.append((record, size_hint))
        # The bell is free once somebody has rung: most records of a burst find it so.
        if queued >= self._ring_at and (self._thread is None or self._bell.locked()):
            self._ring()
        if len(self._queue) >= self._pressure.look_at:
            self._hold()

    def _hold(self) -> None:
        """
        Wait for the disk, or for room.
        """
        if not self.blocks:
            if self._full():
                self._pressure.wait(partial(self._backs_up, self._full))
            return
        if not self.flush(DURABLE_S):
            with self._counting:
                self.undurable += 1
                first = self.undurable == 1
            if first:
                say(logging.WARNING, "records for `%s` are not on the disk when their calls go on", self.path)

    def _full(self) -> bool:
        return self._pressure.full(len(self._queue))

    def _wait_for(self, size_hint: int) -> None:
        """
        Wait until *size_hint* more bytes may wait, if they ever may.
        """
        if size_hint <= self._max_queued:
            self._pressure.wait(partial(self._backs_up, lambda: self._queued + size_hint > self._max_queued))

    def _backs_up(self, full: Callable[[], bool]) -> bool:
        """
        Whether there is still no room, as *full* says, and a thread that will make some.
        """
        if self._closed or self._writer.faults or not full():
            return False
        self._ring()
        return self._thread is not threading.current_thread()

    def close(self) -> None:
        """
        Write the queued records. Records that cannot be written count as failed, records that are put later as dropped.
        """
        self._closed = True
        self._ring()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join()

        with self._writing:
            # What the thread could not write, or no thread was there for.
            self._write_queued()
            lost = self._writer.give_up()

        if lost:
            say(logging.WARNING, "%d records for `%s` could not be written and are lost", lost, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin_in_child(self) -> None:
        """
        Begin anew in a forked child: the parent writes the records that were queued. Called after every fork.
        """
        fd = self._writer.fd
        self._begin()
        if fd >= 0:
            os.close(fd)

    def _drop(self, why: "Dropped") -> None:
        with self._counting:
            self.dropped_by[why] += 1
            first = why not in self._said_dropped
            if why == "closed":
                self._said_dropped.add(why)
        if first and why == "closed":
            say(logging.WARNING, "records for `%s` are dropped: the sink is closed", self.path)
        elif first:
            self._ring()

    def _say_dropped(self) -> None:
        """
        Say once, in the thread, that too many records wait.
        """
        lost = self.dropped_by["full"]
        if lost and "full" not in self._said_dropped:
            self._said_dropped.add("full")
            full = f"over {self._max_queued} bytes queued"
            say(logging.WARNING, "records for `%s` are dropped: %s (%d so far)", self.path, full, lost)
