"""
Names of files that fit a pattern, as a shell finds them: standard library only.

`*`, `?` and `[...]` stand for no `/`, and for no dot at the beginning of a name. The names are in the order of their
bytes.
"""

import os

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple


MAX_FOUND: Final = 65_536
"""Names that one word may stand for."""
MAX_SEEN: Final = 1_000_000
"""Names that are looked at for one word."""
Parts = Sequence[Any]
"""Of a word: text, and patterns as lists of one text."""


class TooManyError(Exception):
    """
    More names than a program takes.
    """


class _Set(NamedTuple):
    """
    Characters between brackets.
    """

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def has(self, char: str) -> bool:
        """
        Returns whether it stands for *char*.
        """
        return any(first <= char <= last for first, last in self.ranges) is not self.negated


_Item = str | None | _Set
"""A character; an empty text for any one; None for any number of any; a set."""


def expanded(parts: Parts) -> list[str]:
    """
    The words that *parts* stand for in the working folder: one, the text itself, if it has no pattern or no name fits.

    Before a name that begins with `-` stands `./`, so that it is no option. Raises TooManyError.
    """
    if all(isinstance(part, str) for part in parts):
        return ["".join(parts)]
    found = sorted(_found(_components(parts)), key=encoded)
    if not found:
        return ["".join(part if isinstance(part, str) else part[0] for part in parts)]
    return [f"./{name}" if name.startswith("-") else name for name in found]


def encoded(text: str) -> bytes:
    """
    Returns *text* as programs get it, in any locale.
    """
    return text.encode("utf-8", "surrogateescape")


def _components(parts: Parts) -> list[list[_Item]]:
    found: list[list[_Item]] = [[]]
    for part in parts:
        if not isinstance(part, str):
            found[-1].append(_item(part[0]))
            continue
        for place, text in enumerate(part.split("/")):
            if place:
                found.append([])
            found[-1] += text
    return found


def _item(pattern: str) -> _Item:
    if pattern in ("*", "?"):
        return None if pattern == "*" else ""
    inside = pattern[1:-1]
    negated = inside[0] == "!"
    inside = inside[negated:]
    ranges, place = [], 0
    while place < len(inside):
        far = place + 2 if inside[place + 1 : place + 2] == "-" and place + 2 < len(inside) else place
        ranges.append((inside[place], inside[far]))
        place = far + 1
    return _Set(tuple(ranges), negated)


def _found(components: list[list[_Item]]) -> list[str]:
    paths, listed, seen = [""], False, 0
    for place, component in enumerate(components):
        last = place == len(components) - 1
        slash = "" if last else "/"
        text = "".join(item for item in component if isinstance(item, str) and item)
        if len(text) == len(component):
            paths = [f"{path}{text}{slash}" for path in paths]
            if listed:
                paths = [path for path in paths if (os.path.lexists if last else os.path.isdir)(encoded(path))]
            continue
        listed, found = True, list[str]()
        for path in paths:
            for name in _names(path, folders=not last):
                seen += 1
                if seen > MAX_SEEN or len(found) > MAX_FOUND:
                    raise TooManyError
                if (name[0] != "." or component[0] == ".") and _fits(component, name):
                    found.append(f"{path}{name}{slash}")
        paths = found
    return paths


def _names(path: str, *, folders: bool) -> Iterator[str]:
    try:
        with os.scandir(encoded(path) or b".") as entries:
            for entry in entries:
                if not folders or _is_folder(entry):
                    yield entry.name.decode("utf-8", "surrogateescape")
    except OSError:
        return


def _is_folder(entry: "os.DirEntry[bytes]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads to itself.
        return False


def _fits(items: list[_Item], name: str) -> bool:
    """
    Returns whether *name* is what *items* say, in steps of at most the product of their lengths.
    """
    at = here = 0
    after: tuple[int, int] | None = None
    while here < len(name):
        item = items[at] if at < len(items) else False
        if item is None:
            # It takes nothing at first, and one more each time that what is behind it does not fit.
            at += 1
            after = (at, here)
        elif item is not False and (
            not item or (item.has(name[here]) if isinstance(item, _Set) else item == name[here])
        ):
            at, here = at + 1, here + 1
        elif after is not None:
            after = (after[0], after[1] + 1)
            at, here = after
        else:
            return False
    return all(item is None for item in items[at:])
