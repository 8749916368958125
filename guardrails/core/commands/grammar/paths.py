"""
Paths as a shell command writes them, made comparable without looking at any file system.
"""

from guardrails.core.values.late_pattern import pattern


_ALL_OF = pattern(r"/(?:\*\*?|\.\*|\.\[!\.\]\*|\{\*,\.\*\}|\?\*|\*\.\*)/*$")


def plain(word: str) -> str:
    """
    *word* as a path without `//`, `.` and `..`, and without a last `/*`: all in a directory is the directory.
    """
    previous = None
    while previous != word:
        previous = word
        word = _ALL_OF.sub("/", word)
    if not word.startswith(("/", "~", ".")) and "/" not in word:
        return "." if word == "*" else word
    start = "/" if word.startswith("/") else ""
    parts: list[str] = []
    for part in word.split("/"):
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
    *word* as seen from *directory*.
    """
    return plain(word if word.startswith(("/", "~")) else f"{directory}/{word}")
