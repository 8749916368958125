r"""
What quoting hides: backslashes, `$'\x72m'`, `{a,b}`.

Three private characters stand for the braces and commas of a word that nothing quotes, so that only they expand.
"""

import re

from collections.abc import Iterator
from itertools import islice
from typing import Final

from guardrails.core.values.late_pattern import pattern


OPEN, CLOSE, COMMA = "\ue000", "\ue001", "\ue002"
MAX_WORDS: Final = 64
"""Words that one brace expression becomes at most."""

_PLAIN: Final = str.maketrans({OPEN: "{", CLOSE: "}", COMMA: ","})
_MARKED: Final = str.maketrans({"{": OPEN, "}": CLOSE, ",": COMMA})
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
    A word that nothing quotes: backslashes gone, its braces marked.
    """
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
    Text between double quotes.
    """
    return re.sub(r'\\([$`"\\\n])', lambda m: "" if m[1] == "\n" else m[1], text)


def ansi(text: str) -> str:
    r"""
    Text between `$'` and `'`, or the format of `printf`: `\x72`, `\162`, `\u0072`.
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
    The words that *word* is after brace expansion, at most 64.
    """
    return [made.translate(_PLAIN) for made in islice(_braces(word, 0), MAX_WORDS)]


def _braces(word: str, depth: int) -> Iterator[str]:
    start = word.find(OPEN)
    if start < 0 or depth > 16:
        yield word
        return
    level, parts, begin = 0, list[str](), start + 1
    for place in range(start, len(word)):
        char = word[place]
        if char == OPEN:
            level += 1
        elif char == COMMA and level == 1:
            parts.append(word[begin:place])
            begin = place + 1
        elif char == CLOSE:
            level -= 1
            if level == 0:
                parts.append(word[begin:place])
                options = parts if len(parts) > 1 else _sequence(parts[0])
                if options is None:
                    break
                head, tail = word[:start], word[place + 1 :]
                for option in options:
                    yield from _braces(f"{head}{option}{tail}", depth + 1)
                return
    yield from (word[: start + 1].translate(_PLAIN) + rest for rest in _braces(word[start + 1 :], depth + 1))


def _sequence(text: str) -> list[str] | None:
    match = _SEQUENCE.fullmatch(text)
    if match is None:
        return None
    numeric = match[1] is not None
    first, last = (int(match[1]), int(match[2])) if numeric else (ord(match[3]), ord(match[4]))
    step = 1 if first <= last else -1
    values = range(first, last + step, step)
    return [str(value) if numeric else chr(value) for value in islice(values, MAX_WORDS)]
