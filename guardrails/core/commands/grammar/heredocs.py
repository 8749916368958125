"""
Long here-documents, taken out of a command before it is parsed: their text is data, and much of it.
"""

import re

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from guardrails.core.values.late_pattern import pattern


_START: Final = pattern(
    r"""(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\\$`\n]+)"|(\\?)([A-Za-z0-9_.]+))(?=[ \t;&|<>()]|$)"""
)


class Taken(NamedTuple):
    """
    A command without the text of its here-documents.
    """

    text: str
    bodies: dict[int, str]
    """The text that was taken, by the byte of *text* at which the delimiter's word begins."""


def without_bodies(text: str) -> Taken:
    """
    Returns *text* without the here-documents that hold no substitution. A here-document with a quoted delimiter holds
    none, even if its text looks like one. The parser confirms later whether they are here-documents at all.
    """
    kept: list[str] = []
    bodies: dict[int, str] = {}
    size, lines = 0, text.split("\n")
    places, stripped = _places(lines), _places([line.lstrip("\t") for line in lines])
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        kept.append(line)
        begin, place = 0, size
        size += len(line.encode()) + 1
        for match in _START.finditer(line):
            word = _word(match)
            place += len(line[begin:word].encode())
            begin = word
            found = stripped if match[1] else places
            end = _next(found.get(match[2] or match[3] or match[5], ()), position)
            if end is None:
                break
            body = "\n".join(lines[position:end])
            if match[5] and not match[4] and ("$(" in body or "`" in body or "${" in body):
                break
            bodies[place] = body
            kept.append(lines[end])
            size += len(lines[end].encode()) + 1
            position = end + 1
    return Taken("\n".join(kept), bodies)


def _word(match: re.Match[str]) -> int:
    text = match.group()
    return match.start() + len(text) - len(text.lstrip("<-").lstrip(" \t"))


def _places(lines: Sequence[str]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        found.setdefault(line, []).append(number)
    return found


def _next(places: Sequence[int], start: int) -> int | None:
    at = bisect_left(places, start)
    return places[at] if at < len(places) else None
