"""
Regular expressions that are compiled when they are first used.

The library has some two hundred, most of which a session never needs; compiling them took a third of a start.
"""

import re
import sys

from typing import Any, AnyStr, cast


class _Uncompiled:
    """
    Stands for a pattern until a function asks for one of its methods. From then on the name of that function's module
    stands for the pattern itself, so that no later use pays for it.
    """

    __slots__ = ("flags", "made", "pattern")

    def __init__(self, text: str | bytes, flags: int) -> None:
        self.pattern = text
        self.flags = flags
        self.made: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self.made is None:
            self.made = re.compile(self.pattern, self.flags)
        names = sys._getframe(1).f_globals  # noqa: SLF001  the module that holds this
        for key in [key for key, value in names.items() if value is self]:
            names[key] = self.made
        return getattr(self.made, name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """
    Returns the regular expression *text*, for a global name. Whether it is a valid one shows when it is first used.
    """
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))
