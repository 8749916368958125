"""
Names of sessions, checked before anything is done with them.
"""

from typing import Final

from .errors import SessionError


MAX_BYTES: Final = 256


def checked_id(name: str) -> str:
    """
    *name*, if it may name a session.

    Raises SessionError where it is empty, longer than 256 bytes, or holds `..`, a path separator, NUL, a control
    character or text that is not valid Unicode.
    """
    if not isinstance(name, str):
        raise SessionError(f"a session id is text, not {type(name).__name__}")
    if not name.strip():
        raise SessionError("a session id must not be empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise SessionError("a session id must be valid Unicode") from None
    if size > MAX_BYTES:
        raise SessionError(f"a session id has at most {MAX_BYTES} bytes, not {size}")
    for bad, what in (("..", "`..`"), ("/", "`/`"), ("\\", "`\\`")):
        if bad in name:
            raise SessionError(f"a session id must not hold {what}: `{name}`")
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in name):
        raise SessionError("a session id must not hold control characters")
    return name
