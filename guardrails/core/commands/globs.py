"""
One word of a rule, and what it may be: `*` and `?` stand for what is no `/`, `**` for anything, `{a,b}` for either.

The work grows with the length of the text that is matched, and no faster.
"""

import re

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from guardrails.core.commands.grammar.escapes import MAX_WORDS, braces, unquoted


_T = TypeVar("_T")

_STARS: Final = {"**": ".*", "*": "[^/]*"}
_PARTS: Final = re.compile(r"(\*\*|\*|\?|\[[^]]{1,100}\])")
_MANY: Final = re.compile(r"\*+")
_UNITS: Final = re.compile(r"\[[^][]*\]|.", re.DOTALL)
_MAX_SIGNS: Final = 1_000
_MAX_KNOWN: Final = 1_000


class Shape(Protocol):
    """
    Says of text whether it has a form: a compiled expression, or what stands for one.
    """

    def fullmatch(self, text: str, /) -> object: ...


class Word:
    """
    One word of a rule: *text* as it is written, and the *options* that its braces stand for.

    Raises ValueError for more options than are expanded.
    """

    __slots__ = ("exact", "loose", "lowered", "options", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.options = tuple(braces(unquoted(text))) if "{" in text else (text,)
        if len(self.options) >= MAX_WORDS:
            raise ValueError(f"`{text[:40]}` stands for too many words (limit {MAX_WORDS - 1})")
        self.lowered = frozenset(option.lower() for option in self.options)
        self.loose = _shape(self.options, re.IGNORECASE | re.DOTALL)
        """Blind to case."""
        self.exact = _shape(self.options, re.DOTALL)


def _shape(options: Sequence[str], flags: int) -> Shape:
    parted = [_PARTS.split(option) for option in options]
    # An expression may take the first place for what stands behind a star, if that star reaches as far as all behind it.
    if all(_ordered([part for part in parts if part in _STARS]) for parts in parted):
        return re.compile("|".join(map(_expression, parted)), flags)
    return _States(parted, flags)


def _ordered(stars: Sequence[str]) -> bool:
    return "**" not in stars[:-1] or "*" not in stars[stars.index("**") :]


def _expression(parts: Sequence[str]) -> str:
    stars = [place for place, part in enumerate(parts) if part in _STARS]
    made = _fixed(parts[: stars[0]]) if stars else _fixed(parts)
    for place, after in zip(stars, [*stars, len(parts)][1:], strict=True):
        star, fixed = _STARS[parts[place]], _fixed(parts[place + 1 : after])
        made += f"(?>{star}?{fixed})" if place != stars[-1] else f"{star}{fixed}"
    return made


def _fixed(parts: Sequence[str]) -> str:
    return "".join(
        "[^/]" if part == "?" else part if part.startswith("[") and part.endswith("]") else re.escape(part)
        for part in parts
    )


class _States:
    """
    All places of a rule's word that its text may have come to, as bits of a number: moved on for each character.
    """

    def __init__(self, parted: Sequence[Sequence[str]], flags: int) -> None:
        self._signs: list[re.Pattern[str] | None] = []
        self._start = self._end = self._any = self._within = 0
        for parts in parted:
            at = len(self._signs)
            self._start |= 1 << at
            for part in parts:
                if part in _STARS:
                    self._any |= (part == "**") << at
                    self._within |= 1 << at
                    continue
                single = part == "?" or (part.startswith("[") and part.endswith("]"))
                for sign in [part] if single else part:
                    self._signs.append(re.compile(_fixed([sign]), flags))
                    at += 1
            self._end |= 1 << at
            # Behind the end of one comes the start of the next.
            self._signs.append(None)
        self._taken: dict[str, int] = {}

    def fullmatch(self, text: str, /) -> object:
        """
        Returns a true value if one of the words stands for *text*, else None.
        """
        now = self._start
        for char in text:
            taken = self._taken.get(char)
            if taken is None:
                taken = self._takes(char)
            now = (now & taken) << 1 | now & (self._any if char == "/" else self._within)
            if not now:
                return None
        return now & self._end or None

    def _takes(self, char: str) -> int:
        taken = sum(
            1 << at for at, sign in enumerate(self._signs) if sign is not None and sign.fullmatch(char) is not None
        )
        if len(self._taken) < _MAX_KNOWN:
            self._taken[char] = taken
        return taken


def may_be(form: str, text: str) -> bool:
    """
    Returns whether *form*, a pattern of the shell that a command is given, may stand for *text*: `/b*` for `/bin`.
    """
    signs = _UNITS.findall(_MANY.sub("*", form[: 4 * _MAX_SIGNS]))
    return in_order(signs, text, "*".__eq__, lambda sign, char: sign == "?" or len(sign) > 1 or sign == char)


def in_order(
    signs: Sequence[_T], given: Sequence[str], is_many: Callable[[_T], bool], takes: Callable[[_T, str], bool]
) -> bool:
    """
    Returns whether *signs* stand for all of *given*, one after another; one that *is_many* stands for any number,
    another for one that it *takes*. In steps of at most the product of their lengths.
    """
    at, here, after = 0, 0, None
    while here < len(given):
        if at < len(signs) and is_many(signs[at]):
            # It takes nothing at first, and one more each time that what is behind it does not fit.
            after, at = (at + 1, here), at + 1
        elif at < len(signs) and takes(signs[at], given[here]):
            at, here = at + 1, here + 1
        elif after is not None:
            after = (after[0], after[1] + 1)
            at, here = after
        else:
            return False
    return all(map(is_many, signs[at:]))
