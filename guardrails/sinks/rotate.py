"""
The file of records, and the files that it was: appended to, rotated, read.

`calls.jsonl` becomes `calls.000001.jsonl`, the next one `calls.000002.jsonl`. Sorted by name they are sorted by time,
and the file itself comes last. The process that appends renames the file under its lock, so that it is done once, and
no line is torn or lost.
"""

import errno
import json
import math
import os
import re
import stat
import time

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from guardrails.core.erasing import Record
from guardrails.core.values.logs import warn_once


try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

WAIT_S: Final = 0.5
"""How long a write waits for another process's lock, or for the reader of a full pipe, before that is a fault."""
_FLAGS: Final = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
"""Those that a platform has: none blocks, a child inherits none, and no line end is rewritten."""
_TIME: Final = re.compile(rb'"ts_ms":(\d{10,15})\b')
_DECADE_S: Final = 10 * 366 * 86_400
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)


class Rotation(NamedTuple):
    """
    Rotate a file that would grow beyond *size* bytes, or whose first record is *age* seconds old, and *keep* the latest rotated ones
    only. None: never, and all.
    """

    size: int | None
    age: float | None
    keep: int | None

    def rotate(self, path: Path, fd: int, more: int) -> bool:
        """
        Rename *path*, which is open and locked as *fd*, if it is due before *more* bytes are appended. Returns whether it was renamed.
        """
        size = os.fstat(fd).st_size
        too_large = self.size is not None and size + more > self.size
        if not size or not (too_large or (self.age is not None and time.time() - _born(path, fd) >= self.age)):
            return False
        earlier = rotated(path)
        number = int(earlier[-1].name[len(path.stem) + 1 :].partition(".")[0]) + 1 if earlier else 1
        target = path.with_name(f"{path.stem}.{number:06}{path.suffix}")
        try:
            path.rename(target)
        except OSError as error:
            warn_once(f"rotate {path}", "`%s` cannot be rotated: %s; it grows", path, error.strerror or error)
            return False
        for old in [*earlier, target][: -self.keep] if self.keep else ():
            old.unlink(missing_ok=True)
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
    while True:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        # Reading is for the last byte; a pipe opened for both would seem to have a reader.
        fd = os.open(path, (os.O_WRONLY if path.is_fifo() else os.O_RDWR) | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return _write(fd, lines)
            if fcntl is not None:
                _lock(fd)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(fd)) and not rotation.rotate(path, fd, len(lines)):
                    return _append(fd, lines, path.parent if durable else None)
        finally:
            if fcntl is not None:
                with suppress(OSError):  # Explicitly, since a child forked meanwhile holds a copy of the descriptor.
                    fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def _append(fd: int, lines: bytes, durable: Path | None) -> None:
    size = os.lseek(fd, 0, os.SEEK_END)
    torn = size and os.lseek(fd, -1, os.SEEK_END) and os.read(fd, 1) != b"\n"
    try:
        _write(fd, b"\n" + lines if torn else lines)
        if durable is not None:
            os.fsync(fd)
            if not size and fcntl is not None:
                folder = os.open(durable, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
    except OSError:
        # All is written again: what is in the file already would be there twice.
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[_patiently(os.write, fd, view) :]


def _lock(fd: int) -> None:
    try:
        _patiently(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
            raise  # On a file system without locks, `O_APPEND` alone has to do.


def _patiently(work: Callable[..., Any], *values: Any) -> Any:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return work(*values)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.001)


def rotated(path: Path) -> list[Path]:
    """
    Returns the files that *path* was before it was rotated, oldest first; *path* is not among them.
    """
    own = re.compile(rf"{re.escape(path.stem)}\.(\d{{6,}}){re.escape(path.suffix)}")
    numbers = [(int(match[1]), one) for one in path.parent.glob("*") if (match := own.fullmatch(one.name))]
    return [one for _, one in sorted(numbers)]


def name_before(name: str) -> str | None:
    """
    Returns the name that a file called *name* had before it was rotated, if it was. Returns None if it was not.
    """
    match = re.fullmatch(r"(.+)\.\d{6,}(\.[^.]+)?", name)
    return None if match is None else match[1] + (match[2] or "")


def opened_with_rotated(path: Path) -> Iterator[BinaryIO]:
    """
    Returns the files that *path* was before it was rotated and then itself, opened one by one. A file that is rotated
    meanwhile is read once. Raises OSError if it cannot be read.
    """
    with path.open("rb") if path.exists() or not rotated(path) else nullcontext() as latest:
        for earlier in rotated(path):
            # It was the oldest, and is not kept any more.
            with suppress(FileNotFoundError), earlier.open("rb") as file:
                if latest is None or not os.path.sameopenfile(file.fileno(), latest.fileno()):
                    yield file
        if latest is not None:
            yield latest


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
        for line in opened:
            report.lines += 1
            record = parsed(line)
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


def parsed(line: bytes) -> Any:
    """
    Returns the value of a JSON text, None if it is none. Integers of any length (up to Python's 4,300 digits) stay as they are, and
    numbers may be NaN and text hold lone surrogates, as programs that are not strict write them.
    """
    with suppress(ValueError):
        # Of a longer integer orjson may make a float. To look for one by a pattern takes longer than to read the line.
        if b"0" * 19 not in line.translate(_DIGITS):
            return orjson.loads(line)
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    return None
