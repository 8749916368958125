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
_REASONS: Final = (
    (late(r"\(\?<?[=!]"), "lookaround (`(?=`, `(?!`, `(?<=`, `(?<!`) is not known: write one pattern for each form"),
    (late(r"\(\?P=|\\[1-9]"), "references to what was found (`\\1`) are not known: write out what is repeated"),
    (late(r"\(\?>|[*+?}]\+|\(\?\("), "atomic groups, possessive repeats and conditions are not known: leave them out"),
    (late(r"\(\?[aiLmsux]*[aL]"), "the flags `a` and `L` are not known: write `[0-9]`, `[A-Za-z]`"),
    (late(r"\(\?#"), "comments are not known: leave them out"),
)
_CLASS: Final = late(r"\[\^?\]?[^\]]*\]")
_CLASS_OF_CLASSES: Final = late(r"\[\^?\]?[^\]]*(?:\[|&&|--|~~|\|\|)")


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
        raise NotLinearError(_said(str(error))) from None

    at_end = "$" in pattern

    def found(text: str) -> bool:
        if not text.isascii():
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

        return fits(text) or (at_end and text.endswith("\n") and fits(text[:-1]))

    return found


def _refuse(pattern: str) -> None:
    """
    Raise NotLinearError for what the two engines read differently, or one of them does not.
    """
    if _CLASS_OF_CLASSES.search(pattern):
        raise NotLinearError("a class in a class is not known: write `\\[`, `\\&`, `\\-`, `\\~`, `\\|` in it")

    bare = _CLASS.sub("x", pattern)

    for sign, said in _REASONS:
        if sign.search(bare):
            raise NotLinearError(said)


def _digits(found: re.Match[str]) -> str:
    """
    Returns an escape as far as it can be a reference.
    """
    return found[0] if found[1].isdigit() else "x"


def _said(error: str) -> str:
    if "size limit" in error:
        return "it is too large: write smaller numbers in `{}`, or `[0-9a-z]` in place of `\\w`"

    reason = error.rpartition("error: ")[2].strip().rstrip(".")

    return f"{reason}: put a backslash before a sign that stands for itself"
