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

_WINDOWS: Final = sys.platform == "win32"
system: Final[Any] = ntpath if _WINDOWS else posixpath
"""Paths as the system reads them, by their text alone."""
_REFUSED: Final = {
    r"\s*\Z": "it is empty",
    r"(?s).*\0": "it holds a NUL",
    r"(?s).*[\ud800-\udfff]": "it is not valid Unicode",
    r"[A-Za-z][A-Za-z0-9+.-]+://": "it is a URL, not a path",
    r"~": "`~` stands for no folder here: write `./~` for a name that begins so",
    r"(?!)" if _WINDOWS else r"[A-Za-z]:": "it is a path of another system: write `./` before a name with a colon",
}
"""How what is no path of the workspace begins, and why it is none."""


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
    text = _of_url(value) if value[:5].lower() == "file:" else value
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise BadPathError(f"it has {size:,} bytes (limit {MAX_BYTES:,})")
    for sign, reason in _REFUSED.items():
        if re.match(sign, text):
            raise BadPathError(reason)
    return text


def _of_url(text: str) -> str:
    from urllib.parse import unquote  # 2 ms of a start

    # Readers of URLs leave out tabs and line feeds: what stands there would be another path.
    local = re.fullmatch(r"(?i)file:(?://(?:localhost)?|(?!//))(/[^?#\t\r\n]*)(?:[?#][^\t\r\n]*)?", text)
    if local is None:
        raise BadPathError("it is a `file:` URL of another machine, or without an absolute path")
    # What is not UTF-8 becomes what is refused as no Unicode.
    path = unquote(local[1], errors="surrogateescape")
    return path.removeprefix("/") if _WINDOWS else path


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
    path, root = system.normpath(path), system.normpath(root)
    if root == ".":
        return not system.isabs(path) and path != ".." and not path.startswith(f"..{system.sep}")
    return bool(path == root or path.startswith(root.rstrip(system.sep) + system.sep))
