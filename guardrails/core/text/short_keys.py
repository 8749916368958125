"""
Caches whose keys strangers write: bounded in bytes, not in entries alone.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast


KEY_CHARS: Final = 512
"""Of one text: what is longer comes once, and is worked out each time."""

Function = TypeVar("Function", bound=Callable[[str], Any])


class _Cache(dict[str, Any]):
    """
    What a function returned for each text. A look into a dict is all that a text costs which was there before.
    """

    def __init__(self, function: Callable[[str], Any], entries: int, chars: int) -> None:
        self.function, self.entries, self.chars = function, entries, chars

    def __missing__(self, text: str) -> Any:
        made = self.function(text)
        if len(text) <= self.chars and type(text) is str:
            if len(self) >= self.entries:
                self.clear()
            self[text] = made
        return made


def cached_if_short(entries: int, chars: int = KEY_CHARS) -> Callable[[Function], Function]:
    """
    Keep up to *entries* results of a function of one text, of texts of up to *chars* characters.
    """

    def cached(function: Function) -> Function:
        return cast("Function", _Cache(function, entries, chars).__getitem__)

    return cached
