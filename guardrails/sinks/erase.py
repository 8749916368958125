"""
Erase what a line must not show: arguments and results as a whole, and values by dotted path.
"""

import re

from collections.abc import Callable
from fnmatch import translate
from typing import Any, Final, Literal, get_args

from ..plain_json import plain
from .base import Record


ErasePath = tuple[Callable[[str], object] | None, ...]
"""For each segment a test of a key in folded case; None stands for any number of keys."""
Arguments = Literal["full", "hash", "off"]
Results = Literal["full", "hash", "off"]

PAYLOADS: Final = {
    "arguments": ("sig", "near_sig"),
    "result": ("result_hash", "result_hash_masked"),
}
"""The keys of a record that hold what the caller's tools saw and said, and the keys that hold their hashes."""


def withheld(key: str, mode: str) -> frozenset[str]:
    """
    The keys of a record that are left out where only *mode* stays of *key*. Raises ValueError for another mode.
    """
    if mode not in get_args(Arguments):
        raise ValueError(f"what stays of `{key}` must be full, hash or off, not `{mode}`")

    return frozenset({"full": (), "hash": (key,), "off": (key, *PAYLOADS[key])}[mode])


def parse_path(text: str) -> ErasePath:
    """
    *text*, segments between dots, as what `to_line` erases by. Raises ValueError for an empty segment.
    """
    segments = text.casefold().split(".")
    if not all(segments):
        raise ValueError(f"not a dotted path: `{text}`")

    # At the end of a path, everything below is all that is there.
    *above, last = segments
    return (*map(_segment, above), _segment("*" if last == "**" else last))


def _segment(text: str) -> Callable[[str], object] | None:
    if text == "**":
        return None

    return re.compile(translate(text)).match if any(sign in text for sign in "*?[") else text.__eq__


def erase_paths(shown: Record, paths: tuple[ErasePath, ...], erased: list[str]) -> None:
    """
    Take out of *shown* what *paths* lead to, and add to *erased* what went.

    Of the values only those are changed that are copied first.
    """
    deep = [path[0] for path in paths if len(path) > 1]
    for key in list(shown):
        if any(matches is None or matches(key.casefold()) for matches in deep):
            # A copy: the original is the caller's, and ready JSON has to be opened.
            shown[key] = plain(shown[key])
            if key in PAYLOADS and isinstance(shown[key], str):
                del shown[key]
                erased.append(key)

    for path in paths:
        _erase(shown, path, "", erased)


def _erase(node: Any, path: ErasePath, at: str, erased: list[str]) -> None:
    matches, rest = path[0], path[1:]
    if matches is None:
        _erase(node, rest, at, erased)
        rest = path

    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        if matches is not None and not matches(str(key).casefold()):
            continue

        where = f"{at}.{key}" if at else str(key)
        if rest:
            _erase(value, rest, where, erased)
            continue

        erased.append(where)
        if isinstance(node, dict):
            del node[key]
        else:
            node[key] = None
