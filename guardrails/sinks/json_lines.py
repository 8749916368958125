"""
Append records to a file by batches: the queue, and its life cycle.
"""

import atexit
import os
import sys
import threading
import time
import weakref

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import orjson

from guardrails.core.erasing import Erasing, Record, Stays
from guardrails.core.text.plain_json import to_json
from guardrails.core.values.logs import warn_once
from guardrails.core.values.units import duration_ms

from .base import Entry
from .rotate import Rotation, append


BATCH_BYTES: Final = 2**20
"""Of size hints, and so of some 500 lines: what one caller writes for all, where the timer does not come first."""
INTERVAL_S: Final = 0.05
RETRY_S: Final = 5.0
"""A file that is faulty holds a call up this seldom."""


class JsonLines:
    """
    Append records to the file *path*. The module says what is promised: what is lost when, and what waits for what.

    At most *max_lines* records, and *max_queued_bytes* by their size hints, wait. If *durable*, `put` returns once its
    record is on the disk; `undurable` counts those that went on without, since the file was faulty.

    The file is rotated before it grows beyond *rotate_bytes*, and once its first record is older than *rotate_after*
    (seconds, or `1d`): it becomes `calls.000001.jsonl`. The latest *keep* of the rotated files stay, or all.

    The paths of *redact* name values to erase, dotted from the top of the record. Each segment is a glob (`*`, `?`,
    `[a-z]`, blind to case) for one key or list index, `**` stands for any number of them. An element of a list becomes
    null. If a path leads into `arguments` or `result` and that is bare text, all of it is erased. *arguments* and
    *results* say how much of those two is written: "full", "hash" (only their hashes), "off" (nothing). Secrets of
    known forms and names become `[redacted]`, unless *redact_secrets* is False. Raises ValueError for a setting that is
    not valid.
    """

    blocks: bool
    """A `put` waits for the disk: asynchronous sessions hand over in a thread."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_lines: int = 1_000,
        max_queued_bytes: int = 64 * 2**20,
        durable: bool = False,
        rotate_bytes: int | None = None,
        rotate_after: float | str | None = None,
        keep: int | None = None,
        redact: str | tuple[str, ...] = (),
        redact_secrets: bool = True,
        arguments: Stays = "full",
        results: Stays = "hash",
    ) -> None:
        # A chdir must not move the file.
        self.path = Path(path).absolute()
        self.blocks = durable
        for name, number in {"keep": keep, "rotate_bytes": rotate_bytes, "max_lines": max_lines}.items():
            if number is not None and number < 1:
                raise ValueError(f"`{name}` is at least 1, not {number}")
        age = None if rotate_after is None else duration_ms(rotate_after) / 1000
        self._rotation = Rotation(rotate_bytes, age, keep)
        self.erasing = Erasing(redact, arguments, results, redact_secrets=redact_secrets)
        self._full_bytes = max_queued_bytes
        # As many again may come while a batch is written, and one more from each thread.
        self._full_lines = 1 if durable else max(1, max_lines // 4)
        self._closed = False
        self.begin_in_child()
        _live.add(self)

    def begin_in_child(self) -> None:
        """
        Begin anew in a forked child: the parent writes the records that were queued. Called after every fork.
        """
        self.written = self.failed = self.dropped = self.undurable = 0
        self._queue, self._lines = deque[Entry](), list[bytes]()
        self._queued, self._retry_at = 0, 0.0
        self._timed = self._finalized = self._writes = False
        # Reentrant: a signal handler may come back while this thread holds it.
        self._writing = threading.RLock()

    def put(self, record: Entry, size_hint: int = 0) -> None:
        queued = self._queued + size_hint
        if queued > self._full_bytes:
            self.dropped += 1
            why = "the sink is closed" if self._closed else f"over {self._full_bytes} bytes wait"
            return self._say(why, "records are dropped: %s", why)
        if self._retry_at and callable(record):
            # What waits for a faulty file waits without the objects it is made of.
            with suppress(Exception):
                record = record()
        # No lock: where two threads meet here, the sum is off by a record until the next batch.
        self._queued = queued
        self._queue.append(record)
        if queued < BATCH_BYTES and len(self._queue) < self._full_lines:
            return None if self._timed else self._start_timer()
        if time.monotonic() < self._retry_at or not self.flush():
            self.undurable += self.blocks
            if self.blocks:
                self._say("undurable", "records are not on the disk when their calls go on")
        return None

    def close(self) -> None:
        """
        Write the queued records. Records that cannot be written count as failed, records that are put later as dropped.
        """
        self._closed, self._full_bytes = True, -1
        while self.flush() and self._queue:
            pass
        if lost := len(self._lines) + len(self._queue):
            self.failed += lost
            self._lines, self._queue = [], deque()
            self._say("close", "%d of its records could not be written and are lost", lost)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_timer(self) -> None:
        self._timed = True
        timer = threading.Timer(INTERVAL_S, self._in_time)
        timer.daemon = True
        # None is to be had where the interpreter goes down: exit writes.
        with suppress(RuntimeError):
            timer.start()
        process = sys.modules.get("multiprocessing.process")
        if not self._finalized and process is not None and process.parent_process() is not None:
            # Such a child leaves by `os._exit`, without atexit, but with the finalizers of multiprocessing.
            from multiprocessing.util import Finalize

            self._finalized = True
            Finalize(None, self.flush, exitpriority=-100)

    def _in_time(self) -> None:
        # Who puts from here on starts the next.
        self._timed = False
        if time.monotonic() >= self._retry_at:
            self.flush()

    def flush(self, timeout: float | None = None) -> bool:
        """
        Write the records that were put, waiting up to *timeout* seconds for another thread that writes. Returns False
        if they are not in the file.
        """
        if not self._writing.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)):
            return False
        # What a signal handler of this thread has put is written by whom it interrupts.
        begins, self._writes = not self._writes, True
        try:
            return begins and self._write_lines()
        finally:
            self._writes = not begins
            self._writing.release()

    def _make_lines(self) -> None:
        for _ in range(len(self._queue)):
            # Taken once it is a line: an interrupt loses none.
            entry = self._queue[0]
            try:
                self._lines.append(to_line(self.erasing(entry() if callable(entry) else entry)))
            except Exception as error:  # such as a MemoryError
                self.failed += 1
                self._say("lost", "a record could not be made: `%s`", type(error).__name__)
            self._queue.popleft()

    def _write_lines(self) -> bool:
        taken = self._queued
        self._make_lines()
        try:
            if self._lines:
                append(self.path, b"".join(self._lines), self._rotation, durable=self.blocks)
        except OSError as error:
            self._retry_at = time.monotonic() + RETRY_S
            # What was put meanwhile waits with the objects that it is made of.
            self._make_lines()
            self._queued = sum(map(len, self._lines))
            self._say("fault", "records cannot be written: %s (%d waiting)", error.strerror or error, len(self._lines))
            return False
        self.written += len(self._lines)
        self._lines.clear()
        self._queued, self._retry_at = self._queued - taken, 0.0
        return True

    def _say(self, what: str, message: str, *values: object) -> None:
        warn_once(f"{what} {self.path} {id(self)}", f"`%s`: {message}", self.path, *values)


def to_line(record: Record) -> bytes:
    """
    Returns *record* as one line of JSON, whatever its values are; a lone surrogate is escaped. Raises nothing.
    """
    try:
        # Half the time where no keys but text are looked for. What this way cannot write is not used up by it.
        line = orjson.dumps(record)
    except (TypeError, ValueError, RecursionError):
        line = to_json(record)
    # Between the tokens of ready JSON a newline is only white space, inside of them it cannot stand.
    return line.replace(b"\n", b" ") + b"\n"


_live: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _of_all(work: str) -> None:
    for sink in list(_live):
        getattr(sink, work)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _of_all("begin_in_child"))
atexit.register(_of_all, "close")
