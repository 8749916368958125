"""
Long here-documents, taken out of a command before it is parsed: their text is data, and much of it.
"""

import re

from typing import Final, NamedTuple

from guardrails.core.values.late_pattern import pattern


_START: Final = pattern(r"""(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z0-9_.]+))""")


class Taken(NamedTuple):
    """
    A command without the text of its here-documents.
    """

    text: str
    bodies: dict[int, str]
    """What was taken, by the byte of *text* where the delimiter's word begins."""


def without_bodies(text: str) -> Taken:
    """
    *text* without the here-documents that hold no substitution. Whether they are any is for the parser to confirm.
    """
    kept: list[str] = []
    bodies: dict[int, str] = {}
    size, lines = 0, text.split("\n")
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        starts = [(m, size + len(line[: _word(m)].encode())) for m in _START.finditer(line)]
        kept.append(line)
        size += len(line.encode()) + 1
        for match, place in starts:
            end = _end(lines, position, match)
            if end is None:
                break
            body = "\n".join(lines[position:end])
            if "$(" in body or "`" in body or "${" in body:
                break
            bodies[place] = body
            kept.append(lines[end])
            size += len(lines[end].encode()) + 1
            position = end + 1
    return Taken("\n".join(kept), bodies)


def _word(match: re.Match[str]) -> int:
    text = match.group()
    return match.start() + len(text) - len(text.lstrip("<-").lstrip(" \t"))


def _end(lines: list[str], start: int, match: re.Match[str]) -> int | None:
    delimiter = match[2] or match[3] or match[4]
    for number in range(start, len(lines)):
        if (lines[number].lstrip("\t") if match[1] else lines[number]) == delimiter:
            return number
    return None
