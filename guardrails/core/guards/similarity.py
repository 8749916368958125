"""
The likeness of two calls whose arguments differ, as one small number a call: a sketch.

A sketch has six parts. Four are the least hashes of the words in the call's texts, a bottom-k min-hash (Broder 1997; Cohen and Kaplan
2007). The others are a hash of all numbers, and one of all other arguments. A moment is left out, since it says when a call is made and not
what for.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from guardrails.core.values.caches import pattern


NO_SKETCH: Final = 0
"""Of a call whose arguments are not known."""
READ: Final = 512
"""Characters of an argument that are read."""
UNSPACED: Final = "\u0e00"
"""From here on most scripts (Thai, CJK, Hangul) put no space between words: pairs of characters stand for words."""
STEM: Final = 5
"""Characters of a word in another alphabet than Latin, whose endings change with its role in the sentence."""
_PARTS: Final = ((0, 12), (12, 12), (24, 10), (34, 10), (44, 10), (54, 10))
"""(first bit, bits) of the other arguments, the numbers and four words."""
_TIME: Final = pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\d\d?:\d\d(?::\d\d\S*)?|\d{10,19}")
"""A moment in an argument; a date alone names a day, and a day is a thing of its own."""


def sketch_of(arguments: Any) -> int:
    """
    Returns the sketch of *arguments*, 64 bits, signed; `NO_SKETCH` if they are no object.
    """
    if not isinstance(arguments, Mapping):
        return NO_SKETCH
    words, numbers, others = set[str](), list[str](), list[str]()
    for name, value in arguments.items():
        if isinstance(value, str) and is_text(value):
            for word in _words(value[:READ].lower()):
                numbers.append(word) if word.isdecimal() else words.add(word)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append(f"{name}={value}")
        elif not isinstance(value, str):
            others.append(f"{name}={value!r}"[: READ * 4])
        elif _TIME.fullmatch(value) is None:
            others.append(f"{name}={value}")
    least = sorted(map(_digest, words))[:4]
    parts = [*(_digest("\0".join(sorted(some))) for some in (others, numbers)), *least]
    sketch = sum((part & (1 << width) - 1) << at for part, (at, width) in zip(parts, _PARTS, strict=False))
    return (sketch - (1 << 64) if sketch >> 63 else sketch) or 1


def _digest(text: str) -> int:
    return xxh3_64_intdigest(text.encode(errors="replace"))


def is_text(value: str) -> bool:
    """
    Returns whether *value* asks in words: three of them, or a phrase of a script that does not space them.
    """
    head = value[:READ]
    return len(head.split(None, 2)) > 2 or (len(head) > STEM and not head.isascii() and max(head) >= UNSPACED)


def same_but_numbers(one: int, other: int) -> bool:
    """
    Returns whether two calls differ in nothing but numbers, times and texts.
    """
    return NO_SKETCH not in (one, other) and (one ^ other) & 0xFFF == 0


def same_words(one: int, other: int) -> bool:
    """
    Returns whether two calls ask in nearly the same words, with all else equal.
    """
    if NO_SKETCH in (one, other) or (one ^ other) & 0xFFFFFF:
        return False
    words, others = ({sketch >> at & (1 << width) - 1 for at, width in _PARTS[2:]} - {0} for sketch in (one, other))
    return len(words & others) >= min(3, len(words), len(others)) > 1


def _words(text: str) -> Iterator[str]:
    for word in re.findall(r"\w+", text):
        if word.isascii():
            yield word
        elif max(word) < UNSPACED:
            yield word[:STEM]
        else:
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
