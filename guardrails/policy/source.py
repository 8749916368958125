"""
The name by which a policy is called, and what tells one content of a file from another.
"""

import os


Stamp = tuple[int, int, int, int]
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def is_name(text: str) -> bool:
    """
    Returns whether *text* is the name of a policy, and not a path: letters, digits, `_` and `-` only.
    """
    return bool(text) and _LETTERS.issuperset(text)


def whole(source: str) -> str:
    """
    Returns *source* as it means the same in every working directory: a name, or a whole path.
    """
    return source if is_name(source) else os.path.abspath(source)  # noqa: PTH100  pathlib takes 5 ms


def digest(content: bytes) -> str:
    """
    Returns the digest of *content*: 32 hexadecimal digits.
    """
    try:
        from _blake2 import blake2b  # without OpenSSL, whose import takes 3 ms
    except ImportError:
        from hashlib import blake2b
    return str(blake2b(content, digest_size=16).hexdigest())


def stamp(status: os.stat_result) -> Stamp:
    """
    Returns the stamp that tells one version of a file from another.
    """
    # Who copies with the times of the original keeps all but the time of the change.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def stamp_of(path: str) -> Stamp | None:
    """
    Returns the stamp of the file *path*. Returns None if no file can be seen.
    """
    try:
        return stamp(os.stat(path))  # noqa: PTH116
    except OSError:
        return None
