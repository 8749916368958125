"""
JSON of foreign programs, which are not strict: one value a line, or one in all.
"""

import json

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import orjson

from .calls import Report


_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_TRIED: Final = 1_000
"""Lines among which one holds an object or a list, if the file is one of lines."""


def parse(text: bytes) -> Any:
    """
    Returns the value of a JSON text. Integers of any length (up to Python's 4,300 digits) stay as they are.

    Numbers may be NaN or infinite and text may hold lone surrogates, as programs that are not strict write them. Raises
    ValueError if it is not JSON.
    """
    digits = text.translate(_DIGITS)
    # An integer of which orjson may make a float.
    if b"0" * 20 not in digits and b"-0000000000000000000" not in digits:
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


def values_of(data: bytes, report: Report, file: str) -> Iterator[tuple[int, Any]]:
    """
    Yields the JSON values of a file with the line that each begins on. Broken lines are counted.
    """
    lines = data.split(b"\n")
    if not _is_container(next(filter(bytes.strip, lines), b"{}")):
        with suppress(ValueError):
            yield 1, parse(data)
            return
        if not any(map(_is_container, islice(filter(bytes.strip, lines), _TRIED))):
            return
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            value = parse(line)
        except ValueError:
            report.broke(file, number)
        else:
            yield number, value


def _is_container(line: bytes) -> bool:
    with suppress(ValueError):
        return bool(value := parse(line)) and type(value) in (dict, list)
    return False
