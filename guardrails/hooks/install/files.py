"""
A settings file: read as it is, and replaced in one step.
"""

import contextlib
import os
import secrets
import stat
import time

from collections.abc import Iterator
from pathlib import Path
from typing import Final


STALE: Final = 60.0
"""Seconds after which a half-written copy is that of a process which was killed."""
MAX_BYTES: Final = 10_000_000


class Unusable(OSError):
    """
    A settings file that cannot be read or changed.
    """


def read(path: Path) -> str | None:
    """
    The text of *path*, all its bytes kept. Returns None if there is no such file. Raises OSError.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Unusable(f"{path}: not a regular file")
    if found.st_size > MAX_BYTES:
        raise Unusable(f"{path}: more than {MAX_BYTES // 1_000_000} MB are no settings")
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unusable(f"{path}: UTF-16; save it as UTF-8")
    return data.decode(errors="surrogateescape")


def write(path: Path, text: str, *, was: str | None) -> None:
    """
    Replace what *path* leads to by *text*, with its mode and its owner; the folder is made if need be.

    A crash leaves the old or the new file. *was* is the text that was read: raises Unusable if another one stands there by now.
    Raises OSError.
    """
    target = _target(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A copy of private settings is private from its first byte.
    with _copy(target, 0o666 if was is None else 0o600) as copy:
        with copy.open("r+b") as file:
            file.write(text.encode(errors="surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        if was is not None:
            _like(copy, target)
        _unchanged(path, was)
        copy.replace(target)
    _to_disk(target.parent)


def remove(path: Path, *, was: str, folder: bool) -> None:
    """
    Delete the file that *path* leads to and, with *folder*, the folder that it was alone in. Raises OSError.
    """
    target = _target(path)
    _unchanged(path, was)
    target.unlink()
    if folder:
        with contextlib.suppress(OSError):
            target.parent.rmdir()


def _target(path: Path) -> Path:
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        raise Unusable(f"{path}: {error}") from None
    if target.exists() and not os.access(target, os.W_OK):
        raise Unusable(f"{target}: not writable")
    return target


def _unchanged(path: Path, was: str | None) -> None:
    if read(path) != was:
        raise Unusable(f"{path}: another program has just changed it; try again")


@contextlib.contextmanager
def _copy(target: Path, mode: int) -> Iterator[Path]:
    """
    An empty file of *mode* beside *target*, gone at the end; and those that killed processes have left.
    """
    prefix = f".{target.name}.guardrails-"
    with contextlib.suppress(OSError):
        for left in target.parent.glob(f"{prefix}*"):
            if time.time() - left.lstat().st_mtime > STALE:
                left.unlink()
    copy = target.with_name(f"{prefix}{secrets.token_hex(8)}")
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _like(copy: Path, target: Path) -> None:
    found = target.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(copy, found.st_uid, found.st_gid)
    copy.chmod(stat.S_IMODE(found.st_mode))


def _to_disk(folder: Path) -> None:
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
