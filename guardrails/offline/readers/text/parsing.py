"""
The JSON values of a transcript, line by line or as one document. Broken lines are counted, never raised.
"""

import json

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Final

import orjson

from guardrails.offline.readers.base import Report

from .cut_json import completed


MAX_LINE: Final = 64 * 2**20
"""Bytes of a line in a file of lines; a longer one is broken."""
MAX_DOCUMENT: Final = 256 * 2**20
"""Bytes of a file that is one JSON value; parsing takes about six times as much memory."""
TOO_LONG: Final = b"\x00"
"""What stands for a line that was too long to be kept: no JSON."""

_LOOKED_AT: Final = 1_000
"""Lines among which one that is a value shows that a broken file is one of lines."""
_BLANK: Final = frozenset((b"", b"\n", b"\r", b"\r\n"))
_SAME_DIGITS: Final = bytes(ord("0") if chr(code) in "0123456789" else ord(" ") for code in range(256))


def parse(text: bytes) -> Any:
    """
    Returns the value of a JSON text. Raises ValueError if it is not JSON.

    Numbers may be NaN or infinite and text may hold lone surrogates, as programs that are not strict write them. An
    integer beyond 64 bits may come back as a float.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        pass

    try:
        # Of bytes `json` guesses how they are encoded, and reads the first line of UTF-16.
        return json.loads(str(text, "utf-8-sig", "surrogatepass"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_exactly(text: bytes) -> Any:
    """
    Returns `parse`, with integers of any length (up to Python's 4,300 digits) as they are.
    """
    if beyond_64_bits(text):
        with suppress(ValueError, RecursionError):
            return json.loads(str(text, "utf-8-sig", "surrogatepass"))

    return parse(text)


def beyond_64_bits(text: bytes) -> bool:
    """
    Returns whether *text* may hold an integer that orjson would make a float.
    """
    digits = text.translate(_SAME_DIGITS)
    return b"0" * 20 in digits or (b"-9" in text and b"0" * 19 in digits)


def parsed_lines(lines: Iterable[bytes], report: Report, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """
    Returns the JSON objects of *lines* with their numbers from 1. A line that is no object is counted as broken, a
    blank line is not.
    """
    for number, line in enumerate(lines, 1):
        if line in _BLANK:
            continue

        try:
            value = parse_exactly(line)
        except ValueError:
            value = None
        if type(value) is dict:
            yield number, value
        elif line.strip():
            report.broke(file, number)


def parsed_values(lines: Iterable[bytes], report: Report, file: str) -> Iterator[tuple[int, Any]]:
    """
    Returns the JSON values of *lines* with the line that each begins on: one a line, or one in all.

    A document that is cut off is read as far as it goes, and its last line counted as broken. If it is longer than
    `MAX_DOCUMENT` nothing is read, and the report says so.
    """
    rest = iter(lines)
    first = list(_until_second(rest))
    if _is_lines(first):
        yield from _each(chain(first, rest), report, file)
        return

    kept: list[bytes] = []
    room = MAX_DOCUMENT
    for line in chain(first, rest):
        kept.append(line)
        room -= len(line) + 1
        if room < 0:
            report.note(
                file, f"one JSON document of more than {MAX_DOCUMENT >> 20} MB is not read; write it as JSON lines"
            )
            return

    text = b"\n".join(kept)
    if not text.strip():
        return

    try:
        value = parse_exactly(text)
    except ValueError:
        yield from _broken(text, kept, report, file)
    else:
        yield 1, value


def _broken(text: bytes, kept: list[bytes], report: Report, file: str) -> Iterator[tuple[int, Any]]:
    """
    Returns the values that can be saved of a file that is no JSON document.
    """
    value = completed(text)
    if value is None and any(_is_container(line) for line in kept[:_LOOKED_AT]):
        yield from _each(kept, report, file)
        return

    report.broke(file, max(number for number, line in enumerate(kept, 1) if line.strip()))
    if value is not None:
        report.note(file, "the JSON is cut off; what stands before the cut is read")
        yield 1, value


def _until_second(lines: Iterator[bytes]) -> Iterator[bytes]:
    """
    The first two lines that are not blank, with the blank ones before them.
    """
    found = 0
    for line in lines:
        yield line
        found += line not in _BLANK and not line.isspace()
        if found == 2:
            return


def _is_lines(first: list[bytes]) -> bool:
    """
    Whether each line is a value: the first line is, or it is broken and the second is.

    The first lines of a document that is spread over lines are a bracket and a part that no bracket closes. The only
    element of a list can stand alone on its line.
    """
    filled = [line for line in first if line.strip()]
    if not filled or filled[0].strip() in (b"[", b"{"):
        return False

    return any(_is_container(line) for line in filled)


def _is_container(line: bytes) -> bool:
    try:
        value = parse(line)
    except ValueError:
        return False

    return type(value) in (dict, list) and len(value) > 0


def _each(lines: Iterable[bytes], report: Report, file: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue

        try:
            yield number, parse_exactly(line)
        except ValueError:
            report.broke(file, number)
