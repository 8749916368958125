"""
Regular expressions of a policy's author, which meet the text of strangers. Their time is linear in the text, for any
pattern and any text.

Python's own engine goes back and tries again, for minutes on 30 characters if a pattern invites it. The engine here is
that of pydantic (Rust's `regex`), which never goes back, and so knows no lookaround and no backreferences.
"""

import re

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from guardrails.core.values.late_pattern import pattern as late


_PLAIN: Final = late(r"(?:\(\?i\))?(?:[^\\*+?{|(\[$]|\\[bBAdDsSwW\\.*+?{|()\[\]$^-])*")
"""Without a choice there is nothing to go back to. Python's engine does, and the other need not be imported (50 ms)."""
_ESCAPED: Final = late(r"\\(.)", re.DOTALL)
_OWN_ESCAPES: Final = {"Z": r"\z", "<": "<", ">": ">"}
"""Python's meaning of a sign after a backslash, in the words of the other engine."""
_CLASS: Final = late(r"\[\^?\]?[^\]]*\]")
_OTHERWISE: Final = (
    (late(r"\[\^?\]?[^\]]*(?:\[|&&|--|~~|\|\|)"), r"a class in a class: write `\[`, `\&`, `\-`, `\~`, `\|` in it"),
    (late(r"[*+?}]\+"), "a possessive repeat: leave it out"),
)
"""Signs that the two engines read differently. Repeats are looked for outside of classes."""


class NotLinearError(ValueError):
    """
    A pattern that is no regular expression, or that cannot be one of linear time; says what to write instead.
    """


@lru_cache(maxsize=512)
def finder(pattern: str) -> Callable[[str], bool]:
    """
    Returns a function that tells whether *pattern* occurs in a text. Raises NotLinearError.

    A pattern means the same to Python's `re`; `$` also stands before a newline that ends the text.
    """
    if _PLAIN.fullmatch(pattern):
        search = _parsed(pattern).search
        return lambda text: search(text) is not None

    return _engine(pattern)


def _parsed(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise NotLinearError(str(error)) from None


def _engine(pattern: str) -> Callable[[str], bool]:
    from pydantic_core import SchemaError, SchemaValidator

    words = _ESCAPED.sub(lambda found: _OWN_ESCAPES.get(found[1], found[0]), pattern)
    _refuse(_ESCAPED.sub(_digits, pattern))
    _parsed(pattern)
    try:
        fits = SchemaValidator({"type": "str", "pattern": words}).isinstance_python
    except SchemaError as error:
        raise NotLinearError(str(error).rpartition("rror: ")[2].strip().rstrip(".")) from None

    at_end = "$" in pattern

    def found(text: str) -> bool:
        if not text.isascii():
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

        return fits(text) or (at_end and text.endswith("\n") and fits(text[:-1]))

    return found


def _refuse(pattern: str) -> None:
    """
    Raise NotLinearError for what the two engines read differently.
    """
    for (sign, said), shown in zip(_OTHERWISE, (pattern, _CLASS.sub("x", pattern)), strict=True):
        if sign.search(shown):
            raise NotLinearError(f"not known: {said}")


def _digits(found: re.Match[str]) -> str:
    """
    Returns an escape as far as it can be a reference.
    """
    return found[0] if found[1].isdigit() else "x"
