"""
Regular expressions that are compiled once they are used: to compile all that may be needed took a tenth of the start of a hook. And caches
whose keys strangers write: bounded in bytes, not in entries alone.
"""

import re

from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any, Final, TypeVar, cast


class Lazy:
    """
    The object that *make* returns, made once something of it is asked for.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        # From now on it is found in this object itself.
        self.__dict__[name] = member = getattr(self._make(), name)
        return member


@cache
def pattern(text: str) -> re.Pattern[str]:
    """
    Returns the regular expression of *text*. It raises `re.error` at its first use.
    """
    return cast("re.Pattern[str]", Lazy(partial(re.compile, text)))


KEY_CHARS: Final = 512
"""Of one text: what is longer comes once, and is worked out each time."""

Function = TypeVar("Function", bound=Callable[[str], Any])


class Cache(dict[Any, Any]):
    """
    What a *function* returned for each key, a text or a tuple of up to *chars* characters; what it returns for others is not kept. A look
    into a dict is all that a key costs which was there before.
    """

    def __init__(self, function: Callable[[Any], Any], entries: int, chars: int) -> None:
        self.function, self.entries, self.chars = function, entries, chars

    def __missing__(self, key: Hashable) -> Any:
        made = self.function(key)
        if type(key) in (str, tuple) and len(str(key)) <= self.chars:
            if len(self) >= self.entries:
                self.clear()
            self[key] = made
        return made


def cached_if_short(entries: int, chars: int = KEY_CHARS) -> Callable[[Function], Function]:
    """
    Keep up to *entries* results of a function of one text, of texts of up to *chars* characters.
    """

    def cached(function: Function) -> Function:
        return cast("Function", Cache(function, entries, chars).__getitem__)

    return cached
