r"""
The meaning of a path in an argument, before any file system is asked.

A path is read as the system reads it and, if other systems read it otherwise, as they do too. A tool may read a `\` or
a drive letter in either way, and it must not lead out.
"""

import ntpath
import posixpath
import re
import sys

from typing import Any, Final


MAX_BYTES: Final = 4_096
"""PATH_MAX of Linux: longer ones no system call takes."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_WINDOWS: Final = sys.platform == "win32"
_SYSTEM: Any = ntpath if _WINDOWS else posixpath


class BadPathError(ValueError):
    """
    A text that is no path of the workspace, with the reason.
    """


def path_of(value: object) -> str:
    """
    Returns the path that an argument's *value* is: text, or a `file://` URL.

    Raises BadPathError for a value that is no text, is empty, too long or not valid Unicode. It is raised too for a
    NUL, a leading `~`, a drive letter and any other URL.
    """
    if not isinstance(value, str):
        raise BadPathError(f"it is {type(value).__name__}, not text")
    text = _plain(value)
    if text.lower().startswith("file:"):
        text = _plain(_of_url(text))
    elif _URL.match(text):
        raise BadPathError("it is a URL, not a path")
    if text.startswith("~"):
        raise BadPathError("`~` stands for no folder here: write `./~` for a name that begins so")
    if not _WINDOWS and _DRIVE.match(text):
        raise BadPathError("it is a path of another system: write `./` before a name with a colon")
    return text


def _plain(text: str) -> str:
    if not text.strip():
        raise BadPathError("it is empty")
    if "\0" in text:
        raise BadPathError("it holds a NUL")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadPathError("it is not valid Unicode") from None
    if size > MAX_BYTES:
        raise BadPathError(f"it has {size:,} bytes (limit {MAX_BYTES:,})")
    return text


def _of_url(text: str) -> str:
    from urllib.parse import unquote, urlsplit  # 2 ms of a start

    try:
        parts = urlsplit(text)
        path = unquote(parts.path, errors="strict")
    except ValueError:
        raise BadPathError("it is no valid URL") from None
    if parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise BadPathError("it is a `file:` URL of another machine, or without an absolute path")
    return path.removeprefix("/") if _WINDOWS else path


def joined(root: str, path: str) -> str:
    """
    Returns *path* as seen from the folder *root*; nothing is resolved.
    """
    return str(_SYSTEM.join(root, path))


def is_absolute(path: str) -> bool:
    """
    Returns whether *path* begins at the root of the file system.
    """
    return bool(_SYSTEM.isabs(path))


def readings(path: str) -> tuple[str, ...]:
    r"""
    Returns *path* in every way that a tool may read it: with `\` as a letter, and as a separator.
    """
    return tuple(dict.fromkeys((path, path.replace("\\", "/"))))


def within(path: str, root: str) -> bool:
    """
    Returns whether *path* is the folder *root* or below it by its text alone. Both are absolute, or both relative to
    one folder.
    """
    path, root = _SYSTEM.normpath(path), _SYSTEM.normpath(root)
    if root == ".":
        return not is_absolute(path) and path != ".." and not path.startswith(f"..{_SYSTEM.sep}")
    return bool(path == root or path.startswith(root.rstrip(_SYSTEM.sep) + _SYSTEM.sep))
