"""
The likeness of two calls whose arguments differ, as one small number a call: a sketch.

A sketch has six parts. Four are the least hashes of the words in the call's texts, a bottom-k min-hash (Broder 1997; Cohen and Kaplan
2007). The others are a hash of all numbers, and one of all other arguments. A moment is left out, since it says when a call is made and not
what for.
"""

import re

from collections.abc import Iterator, Mapping, Set
from itertools import compress, repeat
from operator import not_
from typing import Any, Final

from orjson import OPT_SORT_KEYS, dumps
from xxhash import xxh3_64_intdigest

from guardrails.core.result import Reading, evidence_of
from guardrails.core.result.names import Form, form_of


STEADY: Final = 8_192
"""Bytes of a result of which the news is taken; longer ones are compared as they are."""
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
_HOLDERS: Final = (dict, list)
_NONE, _SORTED = repeat(None), repeat(OPT_SORT_KEYS)
_WORD: Final = re.compile(r"(\w+)")
_GIVEN: Final = re.compile(r"(?:~\W*)+")
_DIGITS: Final = re.compile(r"[0-9]")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\d\d?:\d\d(?::\d\d\S*)?|\d{10,19}")
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
    parts = [*(_digest("\0".join(sorted(some))) for some in (others, numbers)), *least, 0, 0, 0, 0][:6]
    sketch = sum((part & (1 << width) - 1) << at for part, (at, width) in zip(parts, _PARTS, strict=True))
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


def news_hash(reading: Reading) -> int:
    """
    Returns 32 bits of the news in a result: rows in any order; of an object neither what repeats an argument, nor times, durations, ids of
    the request and counts of progress. Of a failure its kind and first words, without digits and arguments.
    """
    if reading.error_type is not None:
        return _digest(_failure(reading)) & 0xFFFFFFFF or 1
    shown, content, digest = reading.rendered or reading.render(), reading.content, reading.hash
    if shown is not None and shown.size <= STEADY and type(content) in _HOLDERS:
        try:
            news = news_of(content, reading.given, form=reading.form)
            digest = xxh3_64_intdigest(dumps(news, None, OPT_SORT_KEYS)) if news and news != content else digest
        except TypeError:
            # What JSON has no form for is compared as it is.
            pass
    return digest & 0xFFFFFFFF or 1


def _failure(reading: Reading) -> str:
    from guardrails.core.text.traces import untraced

    message = reading.error_message or evidence_of(reading, reading.render()).decode(errors="replace")
    parts = _WORD.split(untraced(message[:4096])[:400])
    given = set(_WORD.findall(" ".join(reading.given))) if reading.given else ()
    for at in range(1, len(parts), 2):
        if parts[at] in given:
            parts[at] = "~"
    text = _DIGITS.sub("", _GIVEN.sub("~", "".join(parts)))
    return f"{reading.error_type}: {text[:120]}"


def news_of(content: Any, given: Set[str], depth: int = 4, form: Form | None = None) -> Any:
    """
    Returns what is news in *content*: rows in any order; of an object what neither repeats an argument nor speaks of itself. If it holds
    rows by a usual name they are all of it, but for its states. Raises TypeError for what JSON has no form for.
    """
    if type(content) is list:
        return _in_any_order(content)
    if type(content) is not dict or not depth:
        return content
    form = form or form_of(content)
    names = form.stated if content.get(form.rows) else form.facts
    members = [*map(content.__getitem__, names)]
    news = dict(compress(zip(names, members, strict=True), map(not_, map(given.__contains__, map(str, members)))))
    for key, _ in form.lists:
        news[key] = _in_any_order(content[key])
    for key, its in form.objects:
        if not its.aside and (inside := news_of(content[key], given, depth - 1)) != {}:
            news[key] = inside
    return news


def _in_any_order(rows: list[Any]) -> list[int]:
    return sorted(map(xxh3_64_intdigest, map(dumps, rows, _NONE, _SORTED)))
