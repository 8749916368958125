"""
Here-documents: text that a program reads, or that stands in a word, as it is written.
"""

import re

from functools import partial
from typing import Final

from guardrails.core.values.late_pattern import pattern

from .refused import NotInLanguageError, seen


LAST: Final = r"""(?:'([A-Za-z0-9_]+)'|"([A-Za-z0-9_]+)"|\\([A-Za-z0-9_]+)|([A-Za-z0-9_]+))"""
"""The word that ends one, in any quotes; without quotes a shell expands the text."""
_SPECIAL: Final = pattern(r"\\([$`\\\n])|[$`]")
"""Signs that a shell would expand in a here-document whose delimiter stands without quotes."""


def body(text: str, first: "re.Match[str]", begin: int) -> tuple[str, int]:
    """
    Read the here-document of *text* that *first* opens, a match that ends with `LAST`, and whose lines begin at
    *begin*.

    Returns its text, and the place behind its last line. Raises NotInLanguageError.
    """
    last = next(filter(None, first.groups()))
    end = begin if text.startswith(f"{last}\n", begin) else text.find(f"\n{last}\n", begin) + 1
    if not end and text.endswith(f"\n{last}"):
        end = len(text) - len(last)
    if end < begin or begin >= len(text):
        raise NotInLanguageError("a here-document that never ends", first.start())
    found = text[begin:end]
    seen(found, begin)
    if first[4]:
        found = _SPECIAL.sub(partial(_itself, place=first.start()), found)
    return found, min(end + len(last) + 1, len(text))


def _itself(found: "re.Match[str]", *, place: int) -> str:
    if found[1] is None or found[1] == "\n":
        raise NotInLanguageError("a here-document with something to expand", place)
    return found[1]
