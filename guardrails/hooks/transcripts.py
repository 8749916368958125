"""
The file in which a client keeps what its agent does: who reads it takes its latest part, and believes nothing of it.
"""

import os
import stat

from contextlib import suppress
from typing import Final


TAIL: Final = 256 << 10
LONGER_TAIL: Final = 4 << 20
"""Bytes that are read, and those where the latest lines are longer than that."""
HEAD: Final = 64 << 10


def tail(path: str, size: int = TAIL) -> list[bytes]:
    """
    The lines of the last *size* bytes of the file *path*, but for one of which the beginning or the end is missing. Empty if
    there is no such file, or it is no plain one.
    """
    with suppress(OSError, ValueError):
        file = _opened(path)
        try:
            whole = os.fstat(file).st_size
            start = max(0, whole - size)
            os.lseek(file, start, os.SEEK_SET)
            lines = _read(file, size).split(b"\n")
        finally:
            os.close(file)
        # What is written at this moment has no end yet.
        return lines[1 if start else 0 : -1]
    return []


def head(path: str) -> list[bytes]:
    """
    The lines of the first 64 KiB, but for one that goes on behind them.
    """
    with suppress(OSError, ValueError):
        file = _opened(path)
        try:
            return _read(file, HEAD).split(b"\n")[:-1]
        finally:
            os.close(file)
    return []


def _opened(path: str) -> int:
    if not path:
        raise OSError("no file is named")
    # A pipe would wait for who writes into it.
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError("it is no plain file")
    return file


def _read(file: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.read(file, size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
