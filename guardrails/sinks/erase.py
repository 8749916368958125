"""
Erases the values that a line must not show: arguments and results as a whole, and values by dotted path.

A path leads through the tags of the canonical form (see `tagged`) as if they were not there.
"""

import re

from collections.abc import Callable, Iterator
from fnmatch import translate
from typing import Any, Final, Literal, get_args

from guardrails.core.text.plain_json import plain

from .base import Record


ErasePath = tuple[Callable[[str], object] | None, ...]
"""For each segment a test of a key in folded case; None stands for any number of keys."""
Erased = tuple[str, Any]
"""Where a value was, as a dotted path, and the value."""
Arguments = Literal["full", "hash", "off"]
Results = Literal["full", "hash", "off"]

PAYLOADS: Final = {
    "arguments": ("sig", "near_sig"),
    "result": ("result_hash", "result_hash_masked"),
}
"""The keys of a record that hold what the caller's tools saw and said, and the keys that hold their hashes."""
CUT: Final = "_truncated_json"
"""Where a value that was too long has its beginning, as text: paths cannot look into it, so it goes."""
_HEX: Final = re.compile(r"(?:[0-9a-f]{2})*")


def withheld(key: str, mode: str) -> frozenset[str]:
    """
    Returns the keys of a record that are left out if only *mode* stays of *key*. Raises ValueError for another mode.
    """
    if mode not in get_args(Arguments):
        raise ValueError(f"what stays of `{key}` must be full, hash or off, not `{mode}`")

    return frozenset({"full": (), "hash": (key,), "off": (key, *PAYLOADS[key])}[mode])


def parse_path(text: str) -> ErasePath:
    """
    Returns *text*, segments between dots, as a path by which `to_line` erases. Raises ValueError for an empty segment.
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


def leads_to(key: str, paths: tuple[ErasePath, ...]) -> bool:
    """
    Returns whether one of *paths* leads to or into the value of *key*.
    """
    return any(path[0] is None or path[0](key) for path in paths)


def erase_paths(shown: Record, paths: tuple[ErasePath, ...]) -> Iterator[Erased]:
    """
    Take out of *shown* the values that *paths* lead to.

    A value is copied before it is changed.
    """
    deep = tuple(path for path in paths if len(path) > 1)
    for key in list(shown):
        if leads_to(key.casefold(), deep):
            # A copy: the original is the caller's, and ready JSON has to be opened.
            shown[key] = plain(shown[key])
            if key in PAYLOADS and isinstance(shown[key], str):
                yield key, shown.pop(key)

    for path in paths:
        yield from _erase(shown, path, "")


def untagged(value: Any) -> Any:
    """
    Returns the plain form of a value that the canonical form tagged: an object's fields, a set's members, the text of
    bytes.
    """
    if not isinstance(value, dict) or len(value) != 1:
        return value

    [(tag, state)] = value.items()
    match tag, state:
        case "!object", [str(), fields]:
            return fields
        case "!set", list():
            return state
        case "!bytes", str():
            return bytes.fromhex(state).decode(errors="replace") if _HEX.fullmatch(state) else state
        case _:
            return value


def _erase(node: Any, path: ErasePath, at: str) -> Iterator[Erased]:
    matches, rest = path[0], path[1:]
    if matches is None:
        yield from _erase(node, rest, at)
        rest = path

    if at and isinstance(node, dict) and isinstance(node.get(CUT), str):
        yield f"{at}.{CUT}", node.pop(CUT)

    for holder, key, name in _members(node):
        if matches is not None and not matches(name.casefold()):
            continue

        where = f"{at}.{name}" if at else name
        if rest:
            yield from _erase(holder[key], rest, where)
            continue

        value = holder[key]
        if isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = None

        yield where, value


def _members(node: Any) -> list[tuple[Any, Any, str]]:
    """
    The container, the key in it and the name of each value in *node*.
    """
    node = untagged(node)
    if isinstance(node, list):
        return [(node, index, str(index)) for index in range(len(node))]

    if not isinstance(node, dict):
        return []

    pairs = node.get("!dict")
    if len(node) == 1 and isinstance(pairs, list):
        return [(pair, 1, str(untagged(pair[0]))) for pair in pairs if isinstance(pair, list) and len(pair) > 1]

    return [(node, key, key) for key in node]
