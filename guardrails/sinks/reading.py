"""
Read records back: the lines of a file, and the records of each session in their order.
"""

import json
import math
import os

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from .base import Record
from .rotate import opened_with_rotated


@dataclass(slots=True)
class ReadReport:
    """
    The report of `read`: *lines* in all (blank ones too), and the numbers, from 1, of those that are *broken*.
    """

    lines: int = 0
    broken: list[int] = field(default_factory=list)


def read(path: str | os.PathLike[str], report: ReadReport | None = None) -> Iterator[Record]:
    """
    Returns the records in the file *path*, in its order, after those of the files it was rotated into. Lines that are
    no JSON object are skipped and noted in *report*, which numbers them through all files.

    Integers of any length come back exact. Raises OSError if the file cannot be read.
    """
    report = report if report is not None else ReadReport()
    for opened in opened_with_rotated(Path(path)):
        with opened as file:
            for line in file:
                report.lines += 1
                record = _parse(line)
                if isinstance(record, dict):
                    yield record
                elif line.strip():
                    report.broken.append(report.lines)


def by_session(records: Iterable[Record], key: str = "session_id") -> dict[Any, list[Record]]:
    """
    Returns *records* by their session, each session's in the order of its own number `n`; those without one come last.

    A name that lived several times (`run`) has one life after the other, in the order in which they first appear.
    """
    sessions: dict[Any, dict[Any, list[Record]]] = {}
    for record in records:
        sessions.setdefault(record.get(key), {}).setdefault(record.get("run"), []).append(record)

    for lives in sessions.values():
        for life in lives.values():
            life.sort(key=lambda record: n if isinstance(n := record.get("n"), int) else math.inf)

    return {name: [record for life in lives.values() for record in life] for name, lives in sessions.items()}


_SAME_DIGITS: Final = bytes(ord("0") if chr(code) in "0123456789" else ord(" ") for code in range(256))


def _parse(line: bytes) -> Any:
    digits = line.translate(_SAME_DIGITS)
    # orjson makes floats of integers beyond 64 bits.
    beyond = b"0" * 20 in digits or (b"-9" in line and b"0" * 19 in digits)
    try:
        return json.loads(line) if beyond else orjson.loads(line)
    except ValueError:
        pass

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
