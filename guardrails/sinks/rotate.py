"""
The file of records, and the files that it was: appended to, rotated, read.

`calls.jsonl` becomes `calls.000001.jsonl`, the next one `calls.000002.jsonl`. Sorted by name they are sorted by time,
and the file itself comes last. The process that appends renames the file under its lock, so that it is done once, and
no line is torn or lost.
"""

import errno
import json
import logging
import math
import os
import re
import stat
import time

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from .base import say
from .erase import Record


try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

WAIT_S: Final = 0.5
"""How long a write waits for another process's lock, or for the reader of a full pipe, before that is a fault."""
_FLAGS: Final = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
"""Those that a platform has: none blocks, a child inherits none, and no line end is rewritten."""
_TIME: Final = re.compile(rb'"ts_ms":(\d{10,15})\b')
_NUMBERED: Final = re.compile(r"(.+)\.\d{6,}(\.[^.]+)?")
_DECADE_S: Final = 10 * 366 * 86_400
_BEYOND: Final = re.compile(rb"\d{20}|-9\d{18}")
"""An integer of which orjson may make a float."""


class Rotation:
    """
    Rotate a file that would grow beyond *size* bytes, or whose first record is *age* seconds old, and *keep* the latest rotated ones
    only. None: never, and all.
    """

    def __init__(self, size: int | None, age: float | None, keep: int | None) -> None:
        self._size, self._age, self._keep = size, age, keep
        self._failed = False

    def rotate(self, path: Path, fd: int, size: int, more: int) -> bool:
        """
        Rename *path*, which is open and locked as *fd* and has *size* bytes, if it is due before *more* bytes are appended.
        Returns whether it was renamed.
        """
        too_large = self._size is not None and size + more > self._size
        if not size or not (too_large or (self._age is not None and time.time() - _born(path, fd) >= self._age)):
            return False
        earlier = rotated(path)
        number = int(earlier[-1].name[len(path.stem) + 1 :].partition(".")[0]) + 1 if earlier else 1
        target = path.with_name(f"{path.stem}.{number:06}{path.suffix}")
        try:
            path.rename(target)
        except OSError as error:
            if not self._failed:
                say(logging.WARNING, "`%s` cannot be rotated: %s; it grows", path, error.strerror or error)
            self._failed = True
            return False
        for old in [*earlier, target][: -self._keep] if self._keep else ():
            with suppress(OSError):
                old.unlink()
        return True


def _born(path: Path, fd: int) -> float:
    """
    The time of the first record of a file, no earlier than the last of the file before it; now, if that is no time of
    this clock.
    """
    now = time.time()
    os.lseek(fd, 0, os.SEEK_SET)
    first = _TIME.search(os.read(fd, 4_096).partition(b"\n")[0])
    born = int(first[1]) / 1000 if first else now
    with suppress(OSError, IndexError):
        born = max(born, rotated(path)[-1].stat().st_mtime)
    return born if 0 <= now - born < _DECADE_S else now


def append(path: Path, lines: bytes, rotation: Rotation, *, durable: bool = False) -> None:
    """
    Append whole *lines* to the file *path*, all or none; if *durable*, they are on the disk. Raises OSError.
    """
    for _ in range(100):
        fd = _opened(path)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return _write(fd, lines)
            _lock(fd)
            before = os.fstat(fd)
            if _is_at(path, before) and not rotation.rotate(path, fd, before.st_size, len(lines)):
                return _append(fd, lines, before.st_size, path.parent if durable else None)
        finally:
            # Explicitly, since a child forked meanwhile holds a copy of the descriptor.
            if fcntl is not None:
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
    raise OSError(errno.EAGAIN, "renamed again and again while it was opened")


def _append(fd: int, lines: bytes, size: int, durable: Path | None) -> None:
    torn = b""
    if size:
        # Where it reads does not matter to what appends.
        os.lseek(fd, -1, os.SEEK_END)
        torn = b"" if os.read(fd, 1) == b"\n" else b"\n"
    try:
        _write(fd, torn + lines)
        if durable is not None:
            os.fsync(fd)
            if not size and hasattr(os, "O_DIRECTORY"):
                folder = os.open(durable, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
    except OSError:
        # All is written again: what is in the file already would be there twice.
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def _opened(path: Path) -> int:
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        regular = True
        path.parent.mkdir(parents=True, exist_ok=True)
    # Reading is for the last byte; a pipe opened for both would seem to have a reader.
    return os.open(path, (os.O_RDWR if regular else os.O_WRONLY) | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)


def _is_at(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        return False


def _write(fd: int, data: bytes) -> None:
    view, until = memoryview(data), time.monotonic() + WAIT_S
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.001)


def _lock(fd: int) -> None:
    until = time.monotonic() + WAIT_S
    while fcntl is not None:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise BlockingIOError(errno.EAGAIN, "locked by another process") from None
            time.sleep(0.001)
        except OSError as error:
            if error.errno in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
                return None  # A file system without locks: O_APPEND alone has to do.
            raise
    return None


def rotated(path: Path) -> list[Path]:
    """
    Returns the files that *path* was before it was rotated, oldest first; *path* is not among them.
    """
    own = re.compile(rf"{re.escape(path.stem)}\.(\d{{6,}}){re.escape(path.suffix)}")
    try:
        names = os.listdir(path.parent)  # noqa: PTH208  names are all that is asked
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


@dataclass(slots=True)
class ReadReport:
    """
    The report of `read`: *lines* in all (blank ones too), and the numbers, from 1, of those that are *broken*.
    """

    lines: int = 0
    broken: list[int] = field(default_factory=list)


def read(path: str | os.PathLike[str], report: ReadReport | None = None) -> Iterator[Record]:
    """
    Returns the records in the file *path*, in its order, after those of the files it was rotated into. Lines that are
    no JSON object are skipped and noted in *report*, which numbers them through all files.

    Integers of any length come back exact. Raises OSError if the file cannot be read.
    """
    report = report if report is not None else ReadReport()
    for opened in opened_with_rotated(Path(path)):
        with opened as file:
            for line in file:
                report.lines += 1
                record = _parsed(line)
                if isinstance(record, dict):
                    yield record
                elif line.strip():
                    report.broken.append(report.lines)


def by_session(records: Iterable[Record], key: str = "session_id") -> dict[Any, list[Record]]:
    """
    Returns *records* by their session, each session's in the order of its own number `n`; those without one come last.

    A name that lived several times (`run`) has one life after the other, in the order in which they first appear.
    """
    sessions: dict[Any, dict[Any, list[Record]]] = {}
    for record in records:
        sessions.setdefault(record.get(key), {}).setdefault(record.get("run"), []).append(record)
    for lives in sessions.values():
        for life in lives.values():
            life.sort(key=lambda record: n if isinstance(n := record.get("n"), int) else math.inf)
    return {name: [record for life in lives.values() for record in life] for name, lives in sessions.items()}


def _parsed(line: bytes) -> Any:
    with suppress(ValueError):
        if not _BEYOND.search(line):
            return orjson.loads(line)
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    return None
