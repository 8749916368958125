"""
A record as one line of JSON, whatever its values are; a lone surrogate is escaped.
"""

import json

from contextlib import suppress
from typing import Any, Final

import orjson

from guardrails.core.text.plain_json import name_of, options, simpler, to_json

from .base import Record
from .erase import PAYLOADS, Erased, ErasePath, erase_paths, leads_to
from .repeats import has_messages, repeatable, without_repeats


_READY: Final = frozenset({type(None), bool, int, float, str, dict, list, orjson.Fragment})


def to_line(record: Record, withheld: frozenset[str] = frozenset(), paths: tuple[ErasePath, ...] = ()) -> bytes:
    """
    Returns *record* as one line of JSON, without the keys *withheld* and the values at *paths*. Its key `erased` lists
    the erased paths.

    Values erased of `arguments` are erased from the messages of the record too (see `repeats`). The line of a settled
    call has no arguments, since the line of the call has them. Raises nothing for any value.
    """
    erased: list[Erased] = []
    shown = record
    hidden = record.keys() & withheld
    if hidden:
        # A copy without what goes, and not a new one key by key: most lines have one thing withheld.
        shown = record.copy()
        erased = [
            (key, shown.pop(key)) for key in (hidden if len(hidden) == 1 else [key for key in record if key in hidden])
        ]

    if paths or not _READY.issuperset(map(type, shown.values())):
        shown = {key: _opened(key, value) for key, value in shown.items()}

    if paths:
        erased += erase_paths(shown, paths)

    if ("arguments" in withheld or (paths and leads_to("arguments", paths))) and has_messages(shown):
        gone = [(where, _opened(where, value)) for where, value in erased if _is_argument(where)]
        cleared = without_repeats(shown, repeatable(gone, shown) if "arguments" in record else None)
        erased += cleared.items()
        shown = {**shown, **cleared}

    if record.get("event") == "settle" and "arguments" in record:
        erased = [each for each in erased if not _is_argument(each[0])]
        shown = {key: value for key, value in shown.items() if key != "arguments"}

    if erased:
        # Not the caller's record any more: what went is gone from a copy.
        shown["erased"] = [*shown.get("erased", ()), *dict.fromkeys([where for where, _ in erased])]

    line = _written(shown)

    # Between the tokens of ready JSON a newline is only white space, inside of them it cannot stand.
    return line if line.find(b"\n") == len(line) - 1 else line[:-1].replace(b"\n", b" ") + b"\n"


def _written(shown: Record) -> bytes:
    try:
        # Half the time where no keys but text are looked for. What this way cannot write is not used up by it.
        return orjson.dumps(shown, None, orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return orjson.dumps(shown, simpler, options() | orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError, RecursionError):
        pairs = (json.dumps(str(key)).encode() + b":" + to_json(value) for key, value in shown.items())
        return b"{" + b",".join(pairs) + b"}\n"


def _is_argument(where: str) -> bool:
    return where.partition(".")[0] == "arguments"


def _opened(key: str, value: Any) -> Any:
    if callable(value) and not isinstance(value, type):
        try:
            value = value()
        except Exception as error:  # noqa: BLE001  the rest of the record is still worth having
            return name_of(error)

    if key in PAYLOADS and isinstance(value, bytes):
        try:
            orjson.loads(value)
            return orjson.Fragment(value)
        except ValueError:
            with suppress(ValueError, RecursionError):
                return json.loads(value)

    return value
