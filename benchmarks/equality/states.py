"""
Final states, in two forms: the bytes that a file of SQLite keeps, and their fields by name.

Both are reached from outside, by the methods of a store, so that they can be compared whatever the modules are called.
"""

import sqlite3

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import Any

from guardrails import SessionState, SqliteStore


def states(store: Any, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """
    (key, fields by name) of each state.
    """
    for key in keys:
        yield key, store.update([key], lambda found: plain(found[0]))


def rows(store: Any, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """
    (key, packed state in hexadecimal) of each; those of a store in memory are copied into a file first.
    """
    if isinstance(store, SqliteStore):
        path = store.path
    else:
        path = "copied.db"
        with SqliteStore(path, clock=lambda: 0.0) as copied:
            for key in keys:
                kept = store.update([key], lambda found: found[0])
                copied.update([key], lambda found, kept=kept: _copy(kept, found[0]))  # type: ignore[misc]
    with closing(sqlite3.connect(path)) as database:
        yield from database.execute("SELECT key, at_ms || ' ' || hex(state) FROM states ORDER BY key")


def _copy(kept: SessionState, to: SessionState) -> None:
    for field in fields(kept):
        setattr(to, field.name, getattr(kept, field.name))


def plain(value: Any) -> Any:
    """
    *value* as JSON has it: of objects their fields, of other keys than text their pairs.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: plain(inner) for key, inner in value.items()}
        return [[plain(key), plain(inner)] for key, inner in value.items()]
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        # JSON libraries differ about large ones.
        return value if abs(value) < 1 << 53 else str(value)
    return value if isinstance(value, str | float | bool | None) else repr(value)
