"""
Caches whose keys strangers write: bounded in bytes, not in entries alone.
"""

import re

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, Final, TypeVar, cast


KEY_CHARS: Final = 512
"""Of one text: what is longer comes once, and is worked out each time."""

Function = TypeVar("Function", bound=Callable[[str], Any])


class Cache(dict[Any, Any]):
    """
    What a *function* returned for each key of up to *chars* characters. A look into a dict is all that a key costs which was there before.

    *length* returns the characters of a key; None: it is never kept.
    """

    def __init__(
        self, function: Callable[[Any], Any], entries: int, chars: int, length: Callable[[Any], int | None]
    ) -> None:
        self.function, self.entries, self.chars, self.length = function, entries, chars, length

    def __missing__(self, key: Hashable) -> Any:
        made, chars = self.function(key), self.length(key)
        if chars is not None and chars <= self.chars:
            if len(self) >= self.entries:
                self.clear()
            self[key] = made
        return made


def cached_if_short(entries: int, chars: int = KEY_CHARS) -> Callable[[Function], Function]:
    """
    Keep up to *entries* results of a function of one text, of texts of up to *chars* characters.
    """

    def cached(function: Function) -> Function:
        return cast("Function", Cache(function, entries, chars, _chars).__getitem__)

    return cached


@cache
def pattern(source: str) -> re.Pattern[str]:
    """
    Returns the regular expression *source*, a constant. It is compiled where it is first searched for: a long one takes a start 2 ms.
    """
    return re.compile(source)


def _chars(text: str) -> int | None:
    return len(text) if type(text) is str else None
