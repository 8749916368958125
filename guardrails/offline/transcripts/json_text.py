"""
JSON of foreign programs: not strict, broken, or cut off.
"""

import json
import re

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import orjson

from .calls import Report


MAX_DEPTH: Final = 1_000
"""Brackets within each other; orjson reads 1,024."""
_SAME_DIGITS: Final = bytes(ord("0") if chr(code) in "0123456789" else ord(" ") for code in range(256))
_TOKEN: Final = re.compile(
    rb'"(?:[^"\\]|\\.)*+(?P<end>")?|(?P<open>[\[{])|(?P<close>[\]}])|(?P<next>[,:])|[^\s"\[\]{},:]++', re.DOTALL
)
_CLOSING: Final = {b"[": b"]", b"{": b"}"}


def parse(text: bytes) -> Any:
    """
    Returns the value of a JSON text. Integers of any length (up to Python's 4,300 digits) stay as they are.

    Numbers may be NaN or infinite and text may hold lone surrogates, as programs that are not strict write them. Raises
    ValueError if it is not JSON.
    """
    if not beyond_64_bits(text):
        with suppress(ValueError):
            return orjson.loads(text)
    try:
        # Of bytes `json` guesses how they are encoded, and reads the first line of UTF-16.
        return json.loads(str(text, "utf-8-sig", "surrogatepass"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parsed(text: str) -> Any:
    """
    Returns the value of a JSON text, None if it is none.
    """
    with suppress(ValueError):
        return parse(text.encode("utf-8", "surrogatepass"))
    return None


def beyond_64_bits(text: bytes) -> bool:
    """
    Returns whether *text* may hold an integer that orjson would make a float.
    """
    digits = text.translate(_SAME_DIGITS)
    return b"0" * 20 in digits or (b"-9" in text and b"0" * 19 in digits)


def values_of(data: bytes, report: Report, file: str) -> Iterator[tuple[int, Any]]:
    """
    Yields the JSON values of a file with the line that each begins on: one a line, or one in all.

    Broken lines are counted. A document that is cut off is read as far as it goes.
    """
    lines = data.split(b"\n")
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if not filled:
        return
    if not _is_container(lines[filled[0]]):
        with suppress(ValueError):
            yield 1, parse(data)
            return
        # A document over lines begins with a bracket, or with a part that none closes.
        alone = lines[filled[0]].strip() in (b"[", b"{") or not any(_is_container(lines[at]) for at in filled[1:2])
        cut = completed(data) if alone else None
        if cut is not None:
            report.broke(file, filled[-1] + 1)
            report.note(file, "the JSON is cut off; what stands before the cut is read")
            yield 1, cut
            return
        if not any(_is_container(lines[at]) for at in filled[:MAX_DEPTH]):
            return
    for at in filled:
        try:
            value = parse(lines[at])
        except ValueError:
            report.broke(file, at + 1)
        else:
            yield at + 1, value


def _is_container(line: bytes) -> bool:
    try:
        value = parse(line)
    except ValueError:
        return False
    return type(value) in (dict, list) and bool(value)


def completed(text: bytes) -> Any:
    """
    Returns the value of *text* up to the last part that is whole, with the brackets closed that are open there.

    Returns None if no part is whole, the brackets do not match, or *text* is not cut but broken. Takes time in
    proportion to the length of *text*.
    """
    end, closing = _last_whole(text)
    if not closing:
        return None
    try:
        return parse(text[:end] + closing)
    except ValueError:
        return None


def _last_whole(text: bytes) -> tuple[int, bytes]:
    """
    Returns the end of the last whole part of *text*, and the brackets that close it. A text that is not cut needs none.
    """
    closing: list[bytes] = []
    end = 0
    after_colon = False
    for token in _TOKEN.finditer(text):
        if bracket := token["open"]:
            closing.append(_CLOSING[bracket])
            if len(closing) > MAX_DEPTH:
                return 0, b""
            end, after_colon = token.end(), False
        elif bracket := token["close"]:
            if not closing or closing.pop() != bracket:
                return 0, b""
            end, after_colon = token.end(), False
        elif mark := token["next"]:
            after_colon = mark == b":"
            if not after_colon:
                # What stands before a comma is whole, also a number.
                end = token.start()
        elif token["end"] is not None and after_colon:
            end, after_colon = token.end(), False
    return end, b"".join(reversed(closing))
