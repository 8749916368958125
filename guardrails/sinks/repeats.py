"""
Erases from the messages of a record the erased arguments that they repeat.

A message is the library's or a tool's own text and may quote the arguments of the tool. Texts and numbers of 4
characters or more are found as they were given, escaped, or put on one line. They are also found if cut to no less than
the first or last 8 characters. A value that a tool changed (another case, another encoding, a part of it) is not found.
"""

import json
import re
import unicodedata

from collections.abc import Iterable, Iterator
from itertools import takewhile
from operator import is_not
from typing import Any, Final

from guardrails.core.text.plain_json import plain

from .base import Record
from .erase import CUT, Erased, untagged


MESSAGES: Final = ("error_message", "problems", "guard_errors")
"""The keys of a record that hold messages: one text, or rows with the text in second place."""
ERASED: Final = "[erased]"
MIN_CHARS: Final = 4
"""What is shorter is a part of too many words."""
_ODD: Final = re.compile(r"(?a:[^\w-])|^(?=.{6}).*[0-9]|^.{12}", re.DOTALL)
"""In a key inside of an argument that may be content, not a name."""
_CONTENT: Final = re.compile(r"(?a:[^\w-])|^(?=.{6}).*[0-9]", re.DOTALL)
"""The same of the arguments themselves: their names are the library's own."""
EDGE_CHARS: Final = 8
"""A beginning or an end of this length stands for the whole value, which was cut."""


def has_messages(record: Record) -> bool:
    """
    Returns whether there is a message in *record*.
    """
    return any(isinstance(said := record.get(key), str | list | tuple) and said for key in MESSAGES)


def repeatable(erased: Iterable[Erased], record: Record | None = None) -> frozenset[str] | None:
    """
    Returns the erased parts of arguments that a message of *record* could repeat: values, and keys except the names of
    arguments. The pairs in *erased* are the path and value of each.

    Returns None if nobody can say: the arguments are one text, of which any part may be repeated, or they were cut.
    """
    found: set[str] = set()
    unknown = _unknown(record or {})
    for where, value in erased:
        copy = plain(value)
        if (where == "arguments" and isinstance(copy, str)) or where.endswith(f".{CUT}") or _was_cut(copy):
            return None

        if where == "arguments" and isinstance(copy, dict):
            found.update(
                key for key in copy if len(key) >= MIN_CHARS and (key.startswith(unknown) or _CONTENT.search(key))
            )
            copy = list(copy.values())

        found.update(text for text in _texts(copy) if len(text) >= MIN_CHARS)

    return frozenset(found)


def without_repeats(record: Record, values: frozenset[str] | None) -> Record:
    """
    Returns the messages of *record* that repeat one of *values*, rewritten; with None all of them, since any may.
    """
    forms = None if values is None else {form for value in values for form in _forms(value) if len(form) >= MIN_CHARS}
    rewritten = ((key, _rewritten(record.get(key), forms)) for key in MESSAGES)
    return {key: each for key, each in rewritten if each is not None}


def _unknown(record: Record) -> tuple[str, ...]:
    """
    Returns the beginnings of names that no schema knows, as the problems of *record* tell of them: those may be content.
    """
    said = record.get("problems")
    rows = said if isinstance(said, list | tuple) else ()

    return tuple(
        row[0].removesuffix("...")
        for row in rows
        if isinstance(row, list | tuple) and len(row) > 2 and row[2] == "unknown" and row[0] and isinstance(row[0], str)
    )


def _was_cut(value: Any) -> bool:
    last = value[-1] if isinstance(value, list) and value else value
    return isinstance(last, dict) and not last.keys().isdisjoint({CUT, "_truncated"})


def _texts(value: Any) -> Iterator[str]:
    value = untagged(value)
    if isinstance(value, dict):
        yield from filter(_ODD.search, value)
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _forms(value: str) -> Iterator[str]:
    yield value
    if not value.isascii() or not value.isprintable() or any(sign in value for sign in "\\\"' "):
        yield json.dumps(value)[1:-1]
        yield json.dumps(value, ensure_ascii=False)[1:-1]
        yield repr(value)[1:-1]
        yield " ".join(value.split())
        # Arguments that were signed are in normal form C.
        yield unicodedata.normalize("NFD", value)


def _rewritten(said: Any, forms: set[str] | None) -> Any:
    """
    Returns *said* without *forms*, None if it is without them already.
    """
    if isinstance(said, str):
        text = _cleared(said, forms)
        return text if text != said else None

    if not isinstance(said, list | tuple):
        return None

    rows = [_row(row, forms) for row in said]
    return rows if any(map(is_not, rows, said)) else None


def _row(row: Any, forms: set[str] | None) -> Any:
    if not isinstance(row, list | tuple) or len(row) < 2 or not isinstance(row[1], str):
        return row

    # Of a problem; the guard of a `guard_errors` is the library's own word.
    field = _cleared(row[0], forms) if len(row) > 2 and isinstance(row[0], str) and forms is not None else row[0]
    text = _cleared(row[1], forms)
    return row if (field, text) == (row[0], row[1]) else [field, text, *row[2:]]


def _cleared(text: str, forms: set[str] | None) -> str:
    if forms is None:
        return ERASED if text else text

    parts: list[str] = []
    at = 0
    for start, end in sorted(span for form in forms for span in _spans(text, form)):
        if start > at or not parts:
            parts += [text[at:start], ERASED]

        at = max(at, end)

    return "".join(parts) + text[at:]


def _spans(text: str, form: str) -> Iterator[tuple[int, int]]:
    """
    Returns the places of *form* in *text*, or of its beginning, or of its end.
    """
    edge = min(len(form), EDGE_CHARS)
    for at in _places(text, form[:edge]):
        after = text[at + edge :]
        yield at, at + edge + _shared(after, form[edge : edge + len(after)])

    if len(form) > edge:
        for at in _places(text, form[-edge:]):
            rest = form[max(len(form) - edge - at, 0) : -edge]
            yield at - _shared(text[:at][::-1], rest[::-1]), at + edge


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _shared(one: str, other: str) -> int:
    """
    Returns the number of characters that both begin with.
    """
    return sum(1 for _ in takewhile(bool, map(str.__eq__, one, other)))
