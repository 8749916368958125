"""
Files of records that are large or old: renamed and numbered, the oldest deleted.

`calls.jsonl` becomes `calls.000001.jsonl`, the next one `calls.000002.jsonl`. Sorted by name they are sorted by time,
and the file itself comes last. The process that appends renames the file under its lock, so that it is done once, and
no line is torn or lost.
"""

import logging
import os
import re
import time

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from .base import say


_TIME: Final = re.compile(rb'"ts_ms":(\d{10,15})\b')
_NUMBERED: Final = re.compile(r"(.+)\.\d{6,}(\.[^.]+)?")
_HEAD: Final = 4_096
_DECADE_S: Final = 10 * 366 * 86_400


class Moved(Exception):
    """
    The file that was opened is not the one of that name any more: it is to be opened again.
    """


def rotated(path: Path) -> list[Path]:
    """
    Returns the files that *path* was before it was rotated, oldest first; *path* is not among them.
    """
    own = re.compile(rf"{re.escape(path.stem)}\.(\d{{6,}}){re.escape(path.suffix)}")
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        return []
    numbers = sorted((int(found[1]), name) for name in names if (found := own.fullmatch(name)))
    return [path.with_name(name) for _, name in numbers]


def with_rotated(path: Path) -> list[Path]:
    """
    Returns *path*, and before it the files that it was, oldest first. If there are rotated files, *path* itself may not
    be there yet.
    """
    earlier = rotated(path)
    return [*earlier, path] if not earlier or path.exists() else earlier


def name_before(name: str) -> str | None:
    """
    Returns the name that a file called *name* had before it was rotated, if it was. Returns None if it was not.
    """
    found = _NUMBERED.fullmatch(name)
    return None if found is None else found[1] + (found[2] or "")


def opened_with_rotated(path: Path) -> Iterator[BinaryIO]:
    """
    Returns the same, opened one by one. A file that is rotated meanwhile is read once. Raises OSError if it cannot be
    read.
    """
    try:
        latest = path.open("rb")
    except FileNotFoundError:
        if not rotated(path):
            raise
        latest = None
    own = None if latest is None else os.fstat(latest.fileno())
    try:
        for earlier in rotated(path):
            try:
                opened = earlier.open("rb")
            except FileNotFoundError:
                continue  # It was the oldest, and is not kept any more.
            if own is not None and os.path.samestat(own, os.fstat(opened.fileno())):
                opened.close()
                break
            yield opened
        if latest is not None:
            yield latest
    finally:
        if latest is not None:
            latest.close()


class Rotation:
    """
    Rotate a file that would grow beyond *size* bytes, or whose first record is *age* seconds old, and *keep* the latest rotated ones
    only. None: never, and all.
    """

    def __init__(self, size: int | None, age: float | None, keep: int | None) -> None:
        self._size = size
        self._age = age
        self._keep = keep
        self._born: tuple[int, float] = (-1, 0.0)
        self._failed = False

    def due(self, path: Path, fd: int, present: os.stat_result, more: int) -> bool:
        """
        Returns whether the file *path*, open as *fd* and as *present* says it is, is to be rotated before *more* bytes are
        appended.
        """
        if not present.st_size:
            # It begins here and now, whatever a session's own clock says of its first record.
            self._born = present.st_ino, time.time()
            return False
        if self._size is not None and present.st_size + more > self._size:
            return True
        return self._age is not None and time.time() - self._since(path, fd, present.st_ino) >= self._age

    def rotate(self, path: Path) -> bool:
        """
        Rename *path*, whose lock is held. Returns whether it was renamed.
        """
        earlier = rotated(path)
        number = int(earlier[-1].name[len(path.stem) + 1 :].partition(".")[0]) + 1 if earlier else 1
        target = path.with_name(f"{path.stem}.{number:06}{path.suffix}")
        try:
            path.rename(target)
        except OSError as error:
            if not self._failed:
                self._failed = True
                say(logging.WARNING, "`%s` cannot be rotated: %s; it grows", path, error.strerror or error)
            return False
        self._failed = False
        if self._keep is not None:
            for old in [*earlier, target][: -self._keep]:
                with suppress(OSError):
                    old.unlink()
        return True

    def _since(self, path: Path, fd: int, inode: int) -> float:
        """
        The time of the first record in the file, or else when it was first seen here; seconds since 1970. It is no earlier
        than the last record of the file before it.
        """
        now, born = time.time(), None
        if self._born[0] != inode or self._born[1] > now:
            os.lseek(fd, 0, os.SEEK_SET)
            found = _TIME.search(os.read(fd, _HEAD).partition(b"\n")[0])
            if found is not None:
                born = int(found[1]) / 1000
            # A clock of somebody's own says nothing of a file's age.
            born = born if born is not None and 0 <= now - born < _DECADE_S else now
            with suppress(OSError, IndexError):
                born = max(born, rotated(path)[-1].stat().st_mtime)
            # It began in no future: a clock that was ahead has been set right.
            self._born = inode, min(born, now)
        return self._born[1]
