"""
Words of the language: quotes, escapes, patterns and lists in braces, each character accounted for.
"""

import re

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Final

from guardrails.core.values.late_pattern import pattern

from .documents import LAST, body
from .refused import EXIT_CODE, NotInLanguageError, seen
from .tree import Glob, Word


MAX_LISTED: Final = 1 << 18
"""Characters of the words that lists in braces stand for."""
MAX_WORDS: Final = 4_096
"""Of one command, lists in braces written out."""
_PLAIN: Final = pattern(r"[A-Za-z0-9_./:,+@%=^\]!-]+")
"""Characters that stand for themselves outside quotes, at any place of a word."""
_QUOTED: Final = pattern(r'[^"$`\\]+')
_QUOTED_DOLLAR: Final = pattern(r'\$(?=["\s|)/.,:;%])')
"""A `$` that begins nothing, between double quotes."""
_BARE_DOLLAR: Final = pattern(r"\$(?=[ \t\n;|)]|\Z)")
_BEFORE_TILDE: Final = pattern(r"[A-Za-z0-9@^~]")
_BRACKET: Final = pattern(r"\[!?([A-Za-z0-9_.,@%+=-]+)\]")
_PAIR: Final = pattern(r"\{(?:[A-Za-z0-9_@:^~-]*)\}")
"""Braces that are themselves: `{}`, `HEAD@{1}`."""
_LIST: Final = pattern(r"\{[A-Za-z0-9_./:@%+-]*(?:,[A-Za-z0-9_./:@%+-]*)+\}")
_DOCUMENT: Final = pattern(rf"\$\([ \t]*cat[ \t]*<<[ \t]*{LAST}[ \t]*\n")
"""The beginning of a substitution that stands for a text."""
_CLOSING: Final = pattern(r"[ \t\n]*\)")
_ENDS: Final = frozenset(" \t\n;|&<>()")
_KINDS: Final = (str.isdigit, str.islower, str.isupper)
_NAMED: Final = {"`": "a substitution", "$": "an expansion", "}": "a brace", "#": "a comment inside of a word"}


class Reader:
    """
    Reads words of *text* from its *place* on.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    @property
    def char(self) -> str:
        """
        The character at its place; empty at the end.
        """
        return self.text[self.place : self.place + 1]

    def words(self, *, value: bool = False) -> list[Word]:
        """
        Returns the word that begins here; several if it has lists in braces. In a *value* `*` and `?` are themselves.
        """
        return _Parts(self, value=value).read()


class _Parts:
    """
    One word while it is read.
    """

    def __init__(self, reader: Reader, *, value: bool) -> None:
        self.reader = reader
        self.value = value
        self.parts: list[str | Glob | tuple[str, ...]] = []
        """Text, patterns, and lists in braces."""

    def read(self) -> list[Word]:
        reader, text = self.reader, self.reader.text
        begin = reader.place
        while reader.place < len(text):
            plain = _PLAIN.match(text, reader.place)
            if plain is not None:
                self.parts.append(plain[0])
                reader.place = plain.end()
            elif text[reader.place] in _ENDS:
                break
            else:
                self.other(text[reader.place])
        lists = [part for part in self.parts if isinstance(part, tuple)]
        if not lists:
            return [_joined(part for part in self.parts if not isinstance(part, tuple))]
        if prod(map(len, lists)) > MAX_WORDS or prod(map(len, lists)) * (reader.place - begin) > MAX_LISTED:
            raise NotInLanguageError("too many words", begin)
        # The last list changes first, as in a shell.
        choices = [part if isinstance(part, tuple) else (part,) for part in self.parts]
        words = [_joined(parts) for parts in product(*choices)]
        if not all(word.text for word in words):
            # To a shell that is no word at all, unless there are quotes in it.
            raise NotInLanguageError("a brace", begin)
        return words

    def other(self, char: str) -> None:
        reader = self.reader
        begin, after = reader.place, reader.text[reader.place + 1 : reader.place + 2]
        reader.place += 1
        part: str | Glob | tuple[str, ...] = char
        if char == "'":
            part = self.single(begin)
        elif char == '"':
            part = self.double(begin)
        elif char == "\\":
            if after in ("", "\n"):
                raise NotInLanguageError("a backslash at the end of a word", begin)
            seen(after, begin + 1)
            part = after
            reader.place += 1
        elif char in "*?":
            part = Glob(char)
        elif char == "[":
            part = self.bracket(begin)
        elif char == "{":
            part = self.braces(begin)
        elif char == "~":
            # At the beginning, and behind `=` and `:`, it may stand for a home directory.
            if not (self.parts and _BEFORE_TILDE.match(reader.text, begin - 1)):
                raise NotInLanguageError("a home directory", begin)
        elif not (char == "#" and any(self.parts)) and not (char == "$" and _BARE_DOLLAR.match(reader.text, begin)):
            if char in _NAMED:
                raise NotInLanguageError(
                    "a substitution" if char == "$" and after == "(" else _NAMED[char], begin, _advice(char, after)
                )
            seen(char, begin)
        self.parts.append(part.text if self.value and isinstance(part, Glob) else part)

    def single(self, begin: int) -> str:
        reader = self.reader
        end = reader.text.find("'", begin + 1)
        if end < 0:
            raise NotInLanguageError("a quote that is never closed", begin)
        seen(reader.text[begin + 1 : end], begin + 1)
        reader.place = end + 1
        return reader.text[begin + 1 : end]

    def double(self, begin: int) -> str:
        reader, text = self.reader, self.reader.text
        found: list[str] = []
        while True:
            plain = _QUOTED.match(text, reader.place)
            if plain is not None:
                seen(plain[0], reader.place)
                found.append(plain[0])
                reader.place = plain.end()
            char, after = reader.char, text[reader.place + 1 : reader.place + 2]
            reader.place += 1
            if char == '"':
                return "".join(found)
            if not char:
                raise NotInLanguageError("a quote that is never closed", begin)
            if char == "\\" and after and after in '$`"\\\n':
                found.append("" if after == "\n" else after)
                reader.place += 1
            elif char == "$" and (document := _DOCUMENT.match(text, reader.place - 1)) is not None:
                found.append(self.document(document))
            elif char == "\\" or _QUOTED_DOLLAR.match(text, reader.place - 1):
                # Before another character it is itself.
                found.append(char)
            else:
                raise NotInLanguageError(
                    "a substitution" if char == "`" or after == "(" else "an expansion",
                    reader.place - 1,
                    _advice(char, after),
                )

    def document(self, found: "re.Match[str]") -> str:
        """
        Returns the text that `cat` would print of the here-document that *found* begins, without the line ends behind
        it.
        """
        text, end = body(self.reader.text, found, found.end())
        closing = _CLOSING.match(self.reader.text, end)
        if closing is None:
            raise NotInLanguageError("a substitution", found.start())
        self.reader.place = closing.end()
        return text.rstrip("\n")

    def bracket(self, begin: int) -> Glob:
        found = _BRACKET.match(self.reader.text, begin)
        if found is None or not _ordered(found[1]):
            raise NotInLanguageError("a pattern of another form", begin)
        self.reader.place = found.end()
        return Glob(found[0])

    def braces(self, begin: int) -> str | tuple[str, ...]:
        text = self.reader.text
        pair, listed = _PAIR.match(text, begin), _LIST.match(text, begin)
        found = pair or listed
        # A name in braces before a redirection is a variable for its handle.
        if found is None or text[found.end() : found.end() + 1] in ("<", ">") or (listed and self.value):
            raise NotInLanguageError("a brace", begin)
        self.reader.place = found.end()
        return found[0] if pair else tuple(found[0][1:-1].split(","))


def _advice(char: str, after: str) -> str | None:
    return EXIT_CODE if char + after == "$?" else None


def _ordered(inside: str) -> bool:
    """
    Returns whether a `-` *inside* a bracket stands at an end, or goes upward between two letters or digits of one kind.
    """
    for place in range(1, len(inside) - 1):
        first, last = inside[place - 1], inside[place + 1]
        if inside[place] == "-" and not any(kind(first) and kind(last) and first <= last for kind in _KINDS):
            return False
    return True


def _joined(parts: Iterable[str | Glob]) -> Word:
    """
    Returns the word of *parts*. A word that begins with a dash is an option: its `*` is the program's.
    """
    found: list[str | Glob] = []
    text: list[str] = []
    for part in parts:
        if isinstance(part, str):
            text.append(part)
            continue
        if any(text):
            found.append("".join(text))
        text = []
        found.append(part)
    if any(text) or not found:
        found.append("".join(text))
    word = Word(tuple(found))
    return Word((word.text,)) if not word.is_fixed and word.text.startswith("-") else word
