"""
The file of a compiled policy: whole and its owner's alone, or not read.
"""

import json
import os
import stat

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from .source import digest


MAX_BYTES: Final = 8 << 20
"""More than any policy file that is read makes."""
_OPTIONAL: Final = ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK")
"""Flags that not every platform has."""
_FLAGS: Final = sum({getattr(os, name, 0) for name in _OPTIONAL})


def read(path: str) -> Any:
    """
    Returns the data that `write` has put into the file *path*. Returns None if it is not there, not whole, or not its
    reader's own: of another user, writable for others, a link.
    """
    try:
        file = os.open(path, os.O_RDONLY | _FLAGS)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES or _foreign(found):
            return None
        content = _whole(file)
    except OSError:
        return None
    finally:
        os.close(file)
    said, _, text = content.partition(b"\n")
    if said.decode("ascii", "replace") != digest(text):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _whole(file: int) -> bytes:
    parts = []
    while part := os.read(file, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _foreign(found: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or bool(found.st_mode & 0o022))


def write(path: str, data: dict[str, Any], is_same: Callable[[Any], bool]) -> bool:
    """
    Put *data* into the file *path*, at once and for its owner only. Returns whether it was written.

    Data that JSON would give back changed is not written: *is_same* compares the `data` inside.
    """
    try:
        text = json.dumps(data).encode()
        if len(text) > MAX_BYTES or not is_same(json.loads(text)["data"]):
            return False
    except (TypeError, ValueError):
        return False
    own = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        file = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    except OSError:
        return False
    try:
        try:
            os.write(file, digest(text).encode() + b"\n" + text)
        finally:
            os.close(file)
        os.replace(own, path)  # noqa: PTH105
    except OSError:
        _remove(own)
        return False
    return True


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)  # noqa: PTH108
