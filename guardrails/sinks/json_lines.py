"""
Append records to a file by batches: the queue, and its life cycle.
"""

import atexit
import json
import logging
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

from guardrails.core.text.plain_json import options, simpler, to_json
from guardrails.core.values.units import duration_ms

from .base import Entry, Record, say
from .erase import Arguments, Erasing, Results
from .rotate import Rotation, append


BATCH_BYTES: Final = 64 * 2**10
"""Of size hints, and so of a few dozen lines: what one caller writes for all."""
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
        arguments: Arguments = "full",
        results: Results = "hash",
    ) -> None:
        # A chdir must not move the file.
        self.path = Path(path).absolute()
        self.blocks = durable
        """A `put` waits for the disk: asynchronous sessions hand over in a thread."""
        for name, number in {"keep": keep, "rotate_bytes": rotate_bytes, "max_lines": max_lines}.items():
            if number is not None and number < 1:
                raise ValueError(f"`{name}` is at least 1, not {number}")
        age = None if rotate_after is None else duration_ms(rotate_after) / 1000
        self._rotation = Rotation(rotate_bytes, age, keep)
        self.erasing = Erasing(redact=redact, arguments=arguments, results=results, redact_secrets=redact_secrets)
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
        self._queue: deque[tuple[Entry, int]] = deque()
        self._queued = 0
        self._lines: list[bytes] = []
        self._retry_at = 0.0
        self._timed = self._known = self._writes = False
        # Reentrant: a signal handler may come back while this thread holds it.
        self._writing = threading.RLock()
        self._said: set[str] = set()

    def put(self, record: Entry, size_hint: int = 0) -> None:
        queued = self._queued + size_hint
        if self._closed or queued > self._full_bytes:
            return self._drop("the sink is closed" if self._closed else f"over {self._full_bytes} bytes queued")
        # No lock: where two threads meet here, the sum is off by a record until the next batch.
        self._queued = queued
        self._queue.append((record, size_hint))
        if queued >= BATCH_BYTES or len(self._queue) >= self._full_lines:
            if not self._retry_at or time.monotonic() >= self._retry_at:
                self._write()
            if self.blocks and (self._queue or self._lines):
                self.undurable += 1
                self._say("undurable", "records for `%s` are not on the disk when their calls go on", self.path)
        elif not self._timed:
            self._start_timer()
        return None

    def flush(self, timeout: float | None = None) -> bool:
        """
        Write the records that were put, waiting up to *timeout* seconds for another thread that writes. Returns False
        if they are not in the file.
        """
        return self._write(-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX))

    def close(self) -> None:
        """
        Write the queued records. Records that cannot be written count as failed, records that are put later as dropped.
        """
        self._closed = True
        if not self._write():
            with self._writing:
                lost = len(self._lines) + len(self._queue)
                self.failed += lost
                self._lines.clear()
                self._queue.clear()
            say(logging.WARNING, "%d records for `%s` could not be written and are lost", lost, self.path)

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
        if not self._known and process is not None and process.parent_process() is not None:
            # Such a child leaves by `os._exit`, without atexit, but with the finalizers of multiprocessing.
            from multiprocessing.util import Finalize

            self._known = True
            Finalize(None, self.flush, exitpriority=-100)

    def _in_time(self) -> None:
        # Who puts from here on starts the next.
        self._timed = False
        if time.monotonic() >= self._retry_at:
            self._write()

    def _write(self, timeout: float = -1) -> bool:
        """
        Write all that waits. Returns False if a fault stopped it, or another thread took longer than *timeout*.
        """
        if not self._writing.acquire(timeout=timeout):
            return False
        try:
            if self._writes:  # A signal handler of this thread: what it has put is written by whom it interrupts.
                return False
            self._writes = True
            return self._write_lines()
        finally:
            self._writes = False
            self._writing.release()

    def _write_lines(self) -> bool:
        while self._queue:
            # Taken once it is a line: an interrupt loses none.
            entry, size_hint = self._queue[0]
            try:
                self._lines.append(to_line(self.erasing(entry() if callable(entry) else entry)))
            except Exception as error:  # noqa: BLE001  such as a MemoryError
                self.failed += 1
                name = type(error).__name__
                self._say("failed", "a record for `%s` could not be made: `%s`", self.path, name)
            self._queue.popleft()
        try:
            if self._lines:
                append(self.path, b"".join(self._lines), self._rotation, durable=self.blocks)
        except OSError as error:
            self._retry_at = time.monotonic() + RETRY_S
            why, lines = error.strerror or error, len(self._lines)
            self._queued = sum(map(len, self._lines))
            self._say("fault", "records cannot be written to `%s`: %s (%d waiting)", self.path, why, lines)
            return False
        self.written += len(self._lines)
        self._lines.clear()
        self._queued = 0
        if self._retry_at:
            self._retry_at = 0.0
            self._said.discard("fault")
            say(logging.INFO, "records are written to `%s` again", self.path)
        return True

    def _drop(self, why: str) -> None:
        self.dropped += 1
        self._say(why, "records for `%s` are dropped: %s", self.path, why)

    def _say(self, what: str, message: str, *values: object) -> None:
        if what not in self._said:
            self._said.add(what)
            say(logging.WARNING, message, *values)


def to_line(record: Record) -> bytes:
    """
    Returns *record* as one line of JSON, whatever its values are; a lone surrogate is escaped. Raises nothing.
    """
    line = _written(record)
    # Between the tokens of ready JSON a newline is only white space, inside of them it cannot stand.
    return line if line.find(b"\n") == len(line) - 1 else line[:-1].replace(b"\n", b" ") + b"\n"


def _written(record: Record) -> bytes:
    try:
        # Half the time where no keys but text are looked for. What this way cannot write is not used up by it.
        return orjson.dumps(record, None, orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return orjson.dumps(record, simpler, options() | orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError, RecursionError):
        pairs = (json.dumps(str(key)).encode() + b":" + to_json(value) for key, value in record.items())
        return b"{" + b",".join(pairs) + b"}\n"


_live: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _of_all(work: str) -> None:
    for sink in list(_live):
        getattr(sink, work)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _of_all("begin_in_child"))
atexit.register(_of_all, "close")
