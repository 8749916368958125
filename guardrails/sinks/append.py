"""
Append lines to a file that others append to as well: opened, locked, a torn end repaired.
"""

import errno
import os
import select
import stat
import time

from contextlib import suppress
from pathlib import Path
from typing import Final

from .rotate import Moved, Rotation


try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

_FLAGS: Final = ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY")
"""Those that a platform has: none blocks, a child inherits none, and no line end is rewritten."""


WAIT_S: Final = 1.0
"""How long a write waits for another process's lock, or for the reader of a full pipe, before that is a fault."""


def open_to_append(path: Path) -> int:
    """
    Returns a descriptor of the file *path*. A missing file is made, for its owner only, and so is its folder.

    Does not block. Raises OSError.
    """
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        regular = True
        path.parent.mkdir(parents=True, exist_ok=True)

    # Reading is for the last byte; a pipe opened for both would seem to have a reader.
    mode = os.O_RDWR if regular else os.O_WRONLY
    return os.open(path, mode | os.O_APPEND | os.O_CREAT | sum({getattr(os, name, 0) for name in _FLAGS}), 0o600)


def append(
    fd: int, lines: bytes, path: Path | None = None, rotation: Rotation | None = None, *, durable: bool = False
) -> tuple[int, OSError | None]:
    """
    Append *lines*. Returns how many bytes of them are in the file for good (whole lines, unless it is a pipe), and the
    fault. If *durable*, they are on the disk.

    Raises Moved if *fd* is not the file *path* any more, as another process has renamed it, or as *rotation* says it is due.
    """
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return _write(fd, lines)

    _lock(fd)
    try:
        before = os.fstat(fd)
        if not before.st_nlink:
            raise FileNotFoundError(errno.ENOENT, "deleted while it was open")
        if path is not None:
            _stay(fd, before, path, rotation, len(lines))

        torn = before.st_size > 0 and _last_byte(fd) != b"\n"
        done, error = _write(fd, b"\n" + lines if torn else lines)
        unsure = error is None and durable and (error := _sync(fd, path, new=not before.st_size)) is not None
        if error is None:
            return len(lines), None

        # Nobody knows how much is on the disk that could not be waited for: all of it is taken back, and written again.
        whole = 0 if unsure else lines.rfind(b"\n", 0, max(done - torn, 0)) + 1
        # Only where nobody without the lock has written meanwhile. Else, or where it fails, the next write ends the line.
        with suppress(OSError):
            if os.fstat(fd).st_size == before.st_size + done:
                os.ftruncate(fd, before.st_size + (torn + whole if whole else 0))

        return whole, error
    finally:
        # Explicitly, since a child forked meanwhile holds a copy of the descriptor.
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)


def _stay(fd: int, before: os.stat_result, path: Path, rotation: Rotation | None, more: int) -> None:
    try:
        there = path.stat()
    except FileNotFoundError:
        raise Moved from None
    if (there.st_dev, there.st_ino) != (before.st_dev, before.st_ino):
        raise Moved
    if rotation is not None and rotation.due(path, fd, before, more) and rotation.rotate(path):
        raise Moved


def _sync(fd: int, path: Path | None, *, new: bool) -> OSError | None:
    """
    Wait until what was written is on the disk, and so is the name of a file that is *new*.
    """
    try:
        os.fsync(fd)
        if new and path is not None and hasattr(os, "O_DIRECTORY"):
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        return error
    return None


def _last_byte(fd: int) -> bytes:
    # Where it reads does not matter to what appends.
    os.lseek(fd, -1, os.SEEK_END)
    return os.read(fd, 1)


def _write(fd: int, data: bytes) -> tuple[int, OSError | None]:
    view, done = memoryview(data), 0
    while done < len(data):
        try:
            done += os.write(fd, view[done:])
        except BlockingIOError as error:
            full = select.poll()
            full.register(fd, select.POLLOUT)
            if not full.poll(WAIT_S * 1000):
                return done, error
        except OSError as error:
            return done, error

    return done, None


def _lock(fd: int) -> None:
    if fcntl is None:
        return  # O_APPEND alone has to do.
    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise BlockingIOError(errno.EAGAIN, "locked by another process") from None

            time.sleep(0.001)
        except OSError as error:
            # A file system without locks: O_APPEND alone has to do.
            if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
                raise

            return
        else:
            return
