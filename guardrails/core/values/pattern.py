"""
Regular expressions that are compiled once they are used: to compile all that may be needed took a tenth of the start of a hook.
"""

import re

from functools import cache
from typing import Any, cast


_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class _Pattern:
    def __init__(self, text: str) -> None:
        self.pattern = text

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern)
        # From now on these are found in the object itself.
        self.__dict__.update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


@cache
def pattern(text: str) -> re.Pattern[str]:
    """
    Returns the regular expression of *text*. It raises `re.error` at its first use.
    """
    return cast("re.Pattern[str]", _Pattern(text))
