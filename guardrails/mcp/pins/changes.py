"""
Whether a tool still says of itself what it said before.
"""

import json
import re

from collections.abc import Mapping
from typing import Any, Final


PARTS: Final[Mapping[str, str]] = {
    "title": "title",
    "description": "description",
    "inputSchema": "arguments",
    "outputSchema": "form of its results",
    "annotations": "hints",
}
"""What is compared of a declaration, with the word for it."""
_UNORDERED: Final = frozenset({"required", "enum", "type"})
"""Lists whose order says nothing: some servers make them of sets."""
_DATED: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{1,2}:\d\d(?::\d\d)?"
)
"""Some descriptions say what time it is."""
_WORDS: Final = ("description", "title")


def said_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """
    The parts of what a server lists of *tool* that are compared; one that is null is as if it were left out.
    """
    return {part: tool[part] for part in PARTS if tool.get(part) is not None}


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """
    The parts, in words, in which a tool says *now* something else than *before*. Dates and times do not count.
    """
    return [word for part, word in PARTS.items() if _form(part, before.get(part)) != _form(part, now.get(part))]


def _form(part: str, said: Any) -> str:
    # As text, since True is 1 to Python; escaped, so that half a surrogate pair can be written.
    return json.dumps(_plain(part, said), sort_keys=True)


def _plain(name: str | None, said: Any) -> Any:
    if isinstance(said, str):
        return _DATED.sub("<time>", said) if name in _WORDS else said
    if isinstance(said, Mapping):
        return {str(key): _plain(str(key), one) for key, one in said.items()}
    if isinstance(said, list):
        made = [_plain(None, one) for one in said]
        return sorted(made, key=lambda one: json.dumps(one, sort_keys=True)) if name in _UNORDERED else made
    return said
