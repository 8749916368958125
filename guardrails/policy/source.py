"""
The name by which a policy is called, and the digests that stand for contents.
"""

import os
import stat


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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


def digests(paths: "Iterable[str]") -> dict[str, str]:
    """
    Returns the digest of each file of *paths*. It is empty if the file cannot be read, or is no regular file. It never
    waits for a pipe.
    """
    found = {}
    for path in paths:
        try:
            with open(path, "rb", opener=at_once) as file:
                found[path] = digest(file.read()) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else ""
        except OSError:
            found[path] = ""
    return found


def at_once(path: str, flags: int) -> int:
    """
    Returns an opener that waits for nobody who writes into a pipe.
    """
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
