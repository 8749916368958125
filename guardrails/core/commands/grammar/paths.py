"""
Paths as a shell command writes them, made comparable without looking at any file system.
"""

from typing import Final


_ALL_OF: Final = frozenset({"*", "**", ".*", ".[!.]*", "{*,.*}", "?*", "*.*"})


def plain(word: str) -> str:
    """
    Returns *word* as a path without `//`, `.` and `..`, and without a last `/*`: all in a directory is the directory.
    """
    if "/" not in word and not word.startswith(("~", ".")):
        return "." if word == "*" else word
    start = "/" if word.startswith("/") else ""
    given = word.split("/")
    end = len(given)
    while end > 1 and (not given[end - 1] or given[end - 1] in _ALL_OF):
        end -= 1
    parts: list[str] = []
    for part in given[:end]:
        if part in ("", "."):
            continue
        if part == ".." and parts and parts[-1] not in ("..", "~"):
            parts.pop()
        elif part != ".." or not start:
            parts.append(part)
    if parts[:2] == ["~", ".."]:
        # A home directory is two levels down at the most that matter: `~/../..` is the root, `~/..` all homes.
        return "/" if parts[2:3] == [".."] else "/home"
    return start + "/".join(parts) or ("/" if start else ".")


def under(directory: str, word: str) -> str:
    """
    Returns *word* as seen from *directory*.
    """
    return plain(word if word.startswith(("/", "~")) else f"{directory}/{word}")
