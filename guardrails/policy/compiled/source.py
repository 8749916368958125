"""
What a policy is called by, and what stands for a content.
"""

import os


_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def is_name(text: str) -> bool:
    """
    Whether *text* is the name of a policy, and not a path: letters, digits, `_` and `-` only.
    """
    return bool(text) and _LETTERS.issuperset(text)


def whole(source: str) -> str:
    """
    *source* as it means the same in every working directory: a name, or a whole path.
    """
    return source if is_name(source) else os.path.abspath(source)  # noqa: PTH100  pathlib takes 5 ms


def digest(content: bytes) -> str:
    """
    What stands for *content*: 32 hexadecimal digits.
    """
    try:
        from _blake2 import blake2b  # without OpenSSL, whose import takes 3 ms
    except ImportError:
        from hashlib import blake2b
    return str(blake2b(content, digest_size=16).hexdigest())
