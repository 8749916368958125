"""
Cleans a server's words about its tools for a model: no character that a person cannot see is left.
"""

import re
import unicodedata

from collections.abc import Mapping
from typing import Any, Final


_WORDS: Final = ("description", "title")
"""Members whose texts a model reads."""
_DATA: Final = frozenset({"const", "default", "enum", "examples", "pattern"})
"""Members whose texts are values, and stay as they are."""
MAX_DEPTH: Final = 128
"""Lists and objects in one another; a tool with more of them is left out."""
_JOINERS: Final = "\u200c\u200d"
"""Persian, Indic scripts and emoji need them, one at a time."""
_RUN: Final = re.compile("[\u200c\u200d\ufe00-\ufe0f]{3,}")
"""More of them in a row join nothing: they would be a code."""


def visible(text: str) -> str:
    """
    *text* without what a person does not see: control, direction and tag characters, joiners and selectors in rows.
    """
    if text.isascii() and text.isprintable():
        return text
    return _RUN.sub("", "".join(one for one in text if _is_seen(one)))


def _is_seen(one: str) -> bool:
    if one in "\n\r\t" or one in _JOINERS:
        return True
    # The selectors 17 to 256 carry hidden bytes; emoji need the first sixteen only.
    return unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Cn") and not "\U000e0100" <= one <= "\U000e01ef"


def cleaned(declared: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns the *declared* words of a tool with visible texts only. Values, such as those of `enum`, stay unchanged.
    """
    made: dict[str, Any] = _cleaned(declared)
    return made


def _cleaned(said: Any) -> Any:
    if isinstance(said, list):
        return [_cleaned(one) for one in said]
    if not isinstance(said, Mapping):
        return said
    return {
        name: visible(one) if name in _WORDS and isinstance(one, str) else one if name in _DATA else _cleaned(one)
        for name, one in said.items()
    }


def is_deep(said: Any) -> bool:
    """
    Returns whether more than `MAX_DEPTH` lists and objects of *said* are in one another.
    """
    level = [said]
    for _ in range(MAX_DEPTH + 1):
        level = [one for one in level if isinstance(one, (Mapping, list))]
        if not level:
            return False
        level = [each for one in level for each in (one.values() if isinstance(one, Mapping) else one)]
    return True


def marked(server: str, description: str) -> str:
    """
    The *description* of a tool, with a mark that says who wrote it. An empty one stays empty.
    """
    return f"[MCP server `{server}` says] {description}" if description else ""
