r"""
Text that quoting hides: backslashes, `$'\x72m'`, `{a,b}`.

Three private characters stand for the braces and commas of a word that nothing quotes, so that only they expand.
"""

import re

from collections.abc import Sequence
from itertools import islice, product
from typing import Final

from guardrails.core.values.late_pattern import pattern


OPEN, CLOSE, COMMA = "\ue000", "\ue001", "\ue002"
MAX_WORDS: Final = 64
"""Words that one brace expression becomes at most."""
_MAX_LEVELS: Final = 16

_PLAIN: Final = str.maketrans({OPEN: "{", CLOSE: "}", COMMA: ","})
_MARKED: Final = str.maketrans({"{": OPEN, "}": CLOSE, ",": COMMA})
_MARKS: Final = pattern(f"([{OPEN}{CLOSE}{COMMA}])")
_ANSI: Final = pattern(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_LETTERS: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_SEQUENCE: Final = pattern(r"(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z])")


def unquoted(text: str) -> str:
    """
    Returns a word that nothing quotes: backslashes gone, its braces marked.
    """
    if "\\" not in text:
        return text.translate(_MARKED)
    out: list[str] = []
    characters = iter(text)
    for char in characters:
        if char != "\\":
            out.append(char.translate(_MARKED))
            continue
        escaped = next(characters, "")
        out.append("" if escaped == "\n" else escaped)
    return "".join(out)


def double_quoted(text: str) -> str:
    """
    Returns text between double quotes.
    """
    return re.sub(r'\\([$`"\\\n])', lambda m: "" if m[1] == "\n" else m[1], text)


def ansi(text: str) -> str:
    r"""
    Returns text between `$'` and `'`: `\x72`, `\162`, `\u0072`.
    """
    return _ANSI.sub(_decoded, text)


def _decoded(match: re.Match[str]) -> str:
    said = match[1]
    if said[0] in "xuU" and len(said) > 1:
        number = int(said[1:], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    if said[0] in "01234567":
        return chr(int(said, 8) & 0xFF)
    if said[0] == "c" and len(said) == 2:
        return chr(ord(said[1]) & 0x1F)
    return _LETTERS.get(said, said if said in "\\'\"?" else f"\\{said}")


def braces(word: str) -> list[str]:
    """
    Returns the words that *word* is after brace expansion, at most 64. Deeper than 16 levels nothing is expanded.
    """
    if OPEN not in word:
        return [word.translate(_PLAIN)]
    # Of each brace that is open its options, and of each option its parts: the words that a part may be.
    levels: list[list[list[Sequence[str]]]] = [[[]]]
    for piece in _MARKS.split(word):
        if piece == OPEN:
            levels.append([[]])
            if len(levels) > _MAX_LEVELS:
                return [word.translate(_PLAIN)]
        elif piece == COMMA and len(levels) > 1:
            levels[-1].append([])
        elif piece == CLOSE and len(levels) > 1:
            options = levels.pop()
            levels[-1][-1].append(_closed(options))
        elif piece:
            levels[-1][-1].append((piece.translate(_PLAIN),))
    while len(levels) > 1:
        options = levels.pop()
        for sign, option in zip("{" + "," * len(options), options, strict=False):
            levels[-1][-1] += [(sign,), *option]
    return _joined(levels[0][0])


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return ["".join(chosen) for chosen in islice(product(*parts), MAX_WORDS)]


def _closed(options: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    """
    Returns the texts that `{...}` with these *options* may be.
    """
    if len(options) > 1:
        return [word for option in options for word in _joined(option)][:MAX_WORDS]
    words = _joined(options[0])
    found = _sequence(words[0]) if len(words) == 1 else None
    return found or [f"{{{word}}}" for word in words]


def _sequence(text: str) -> list[str] | None:
    match = _SEQUENCE.fullmatch(text)
    if match is None:
        return None
    numeric = match[1] is not None
    first, last = (int(match[1]), int(match[2])) if numeric else (ord(match[3]), ord(match[4]))
    step = 1 if first <= last else -1
    values = range(first, last + step, step)
    return [str(value) if numeric else chr(value) for value in islice(values, MAX_WORDS)]
