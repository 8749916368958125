"""
Lines that go through file descriptors: their bytes as they came, in pieces of any size.
"""

import os
import select
import threading

from collections.abc import Iterator
from typing import Final


MAX_LINE: Final = 256 * 1024 * 1024
"""Bytes of one message. A longer one is dropped: of a flood that never ends nothing else could be told."""
TOO_LONG: Final = "the server sent a message that is too long to be passed on"
ENDS: Final = 8_192
"""Bytes that are kept of each end of a line that is dropped: its id stands in one of them."""
_CHUNK: Final = 256 * 1024


class TooLong(bytes):
    """
    The two ends of a line that was longer than `MAX_LINE`.
    """


def lines(descriptor: int, longest: int = MAX_LINE) -> Iterator[bytes]:
    """
    The lines of *descriptor*, each with its newline if it has one, until its end. A line longer than *longest* bytes
    comes as a `TooLong`.
    """
    kept: list[bytes] = []
    size = 0
    head = b""
    while chunk := _read(descriptor):
        start = 0
        while (end := chunk.find(b"\n", start) + 1) > 0:
            part = chunk[start:end]
            start = end
            if size > longest:
                yield TooLong(head + b"".join(kept)[-ENDS:] + part[-ENDS:])
            else:
                yield b"".join((*kept, part)) if kept else part
            kept, size = [], 0
        if start == len(chunk):
            continue
        kept.append(chunk[start:] if start else chunk)
        size += len(kept[-1])
        if size > longest:
            whole = b"".join(kept)
            head = head if size - len(kept[-1]) > longest else whole[:ENDS]
            kept = [whole[-ENDS:]]
    if kept:
        yield TooLong(head + kept[0]) if size > longest else b"".join(kept)


class Writer:
    """
    Writes whole lines to *descriptor*, from any thread.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._broken = False
        """The last line had no end."""
        self.gone = False
        """Nobody reads any more."""

    def write(self, line: bytes) -> None:
        """
        Write *line*; nothing once nobody reads any more.
        """
        with self._lock:
            if self.gone or not line:
                return
            try:
                if self._broken:
                    _write(self._descriptor, b"\n")
                _write(self._descriptor, line)
            except OSError:
                self.gone = True
                return
            self._broken = not line.endswith(b"\n")

    def close(self) -> None:
        """
        Say that nothing more comes.
        """
        with self._lock:
            if not self.gone:
                self.gone = True
                os.close(self._descriptor)


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            select.select([descriptor], [], [])
        except OSError:
            return b""


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
