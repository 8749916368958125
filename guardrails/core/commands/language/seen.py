"""
Characters that everybody sees.
"""

from typing import Final

from .refused import NotInLanguageError


_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by Unicode's tables that show nothing."""


def seen(text: str, place: int) -> None:
    """
    Raise NotInLanguageError if *text*, which stands at *place*, holds what shows nothing, but for line ends and tabs.
    """
    shown = text.replace("\n", "").replace("\t", "")
    if shown.isprintable() and _UNSEEN.isdisjoint(shown):
        return
    for offset, char in enumerate(text):
        if char not in "\n\t" and (not char.isprintable() or char in _UNSEEN):
            raise NotInLanguageError("a control or invisible character", place + offset)
