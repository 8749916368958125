"""
A kept state as the commands show it: a line of a list, or all of it. Arguments that wait for a person are not shown.
"""

import os
import shutil
import sys

from collections.abc import Iterator, Sequence
from typing import Any, Final

from guardrails.cli.text.printing import heading, printable, table
from guardrails.core.guards.budget import unpriced
from guardrails.core.packing import VERSION, unpack
from guardrails.core.state import Entry, Pending, SessionState
from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.names import SCOPES
from guardrails.core.values.types import MICRO
from guardrails.stores.base import Stored


_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))
_CHILD: Final = "/"
_HEADINGS: Final = ("key", "kind", "version", "idle", "calls", "USD", "tokens", "open", "state")


def line_of(stored: Stored, now_ms: int, messages: dict[str, int]) -> dict[str, Any]:
    """
    Returns the fields of *stored* in a list; *messages* are those of conversations, by id.
    """
    state, unreadable = _read(stored)
    said: dict[str, Any] = {
        "key": stored.key,
        "kind": _kind(stored.key, messages),
        "version": stored.packed[0] if stored.packed else None,
        "bytes": len(stored.packed),
        "changed_ms": stored.changed_ms,
        "idle_s": max(0, now_ms - stored.changed_ms) // 1000,
        "messages": messages.get(stored.key),
        "unreadable": unreadable,
    }
    if state is not None:
        said |= {
            "calls": state.calls,
            "cost_usd": state.cost / MICRO,
            "tokens": state.tokens,
            "open": len(state.pending),
            "ended_by": None if state.exhausted is None else state.exhausted[0],
            "closed": state.closed,
        }
    return said


def list_text(lines: list[dict[str, Any]]) -> str:
    """
    *lines* as a table.
    """
    rows = [_HEADINGS, *map(_cells, lines)]
    if (sys.stdout.isatty() or "COLUMNS" in os.environ) and _too_wide(rows):
        return table(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join((heading(told[0]), *told[1:]))


def _too_wide(rows: Sequence[Sequence[str]]) -> bool:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1) > shutil.get_terminal_size().columns


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    version = "" if line["version"] is None else str(line["version"])
    said = (printable(line["key"]), line["kind"], version, _idle(line["idle_s"]))
    if line["unreadable"]:
        return (*said, "", "", "", "", _condition(line))
    figures = f"{line['calls']:,}", f"{line['cost_usd']:.2f}", f"{line['tokens']:,}", f"{line['open']:,}"
    return (*said, *figures, _condition(line))


def all_of(stored: Stored, now_ms: int, messages: dict[str, int]) -> dict[str, Any]:
    """
    All that is kept in *stored*, for another program.
    """
    said = line_of(stored, now_ms, messages)
    state, _ = _read(stored)
    if state is None:
        return said
    return said | {
        "run": state.run,
        "events": state.n,
        "started_ms": state.started_ms,
        "now_ms": state.now_ms,
        "turns": state.turns,
        "unpriced": unpriced(state),
        "held_cost_usd": state.held_cost / MICRO,
        "held_tokens": state.held_tokens,
        "reserved": state.reserved,
        "limits": state.limits,
        "own": state.own,
        "ended_because": None if state.exhausted is None else state.exhausted[1],
        "window": [_entry(entry) for entry in state.window],
        "pending": [_pending(one) for one in state.pending.values()],
    }


def all_text(said: dict[str, Any]) -> str:
    """
    The same for a person.
    """
    return "\n".join(_lines(said))


def _lines(said: dict[str, Any]) -> Iterator[str]:
    yield heading(f"{said['key']}: {said['kind']}, {_condition(said)}")
    yield f"  {said['bytes']:,} bytes of version {said['version']}, changed {_idle(said['idle_s'])} ago"
    if said["messages"] is not None:
        yield f"  {said['messages']:,} messages"
    if said["unreadable"]:
        yield printable(f"  it {said['unreadable']}")
        return
    yield (
        f"  used: calls {said['calls']:,}, turns {said['turns']:,}, "
        f"tokens {said['tokens']:,}, USD {said['cost_usd']:.6f} (responses without a price: {said['unpriced']:,})"
    )
    yield f"  held: tokens {said['held_tokens']:,}, USD {said['held_cost_usd']:.6f}"
    if said["ended_because"]:
        yield printable(f"  ended by {said['ended_by']}: {said['ended_because']}")
    for name in ("limits", "reserved", "own"):
        if said[name]:
            yield f"  {name}: " + printable(", ".join(f"{key} {value}" for key, value in said[name].items()))
    for name in ("pending", "window"):
        if said[name]:
            yield heading({"pending": "Open calls", "window": "Latest calls"}[name])
            columns = list(said[name][0])
            rows = [tuple(columns), *(tuple("" if v is None else str(v) for v in one.values()) for one in said[name])]
            yield table(rows)


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "tool": entry.tool,
        "at_ms": entry.at_ms,
        "status": entry.status,
        "error": entry.error_type,
    }


def _pending(one: Pending) -> dict[str, Any]:
    asked = one.question
    return {
        "seq": one.seq,
        "tool": one.tool,
        "id": one.id,
        "expires_ms": one.expires_ms,
        "cost_usd": one.cost / MICRO,
        "tokens": one.tokens,
        "waits_for": None if asked is None else asked.code if one.waits else "to be made again",
    }


def _read(stored: Stored) -> tuple[SessionState | None, str | None]:
    try:
        return unpack(stored.packed), None
    except StateUnreadable as error:
        return None, error.reason


def _kind(key: str, messages: dict[str, int]) -> str:
    if key.startswith(SCOPES):
        return "scope"
    return "conversation" if key in messages else "child" if _CHILD in key else "session"


def _condition(line: dict[str, Any]) -> str:
    if line["unreadable"]:
        return "damaged" if line["version"] in (None, VERSION) else f"of version {line['version']}"
    return "closed" if line["closed"] else printable(line["ended_by"] or "goes on")


def _idle(seconds: int) -> str:
    return next((f"{seconds * 1000 // ms}{unit}" for unit, ms in _UNITS if seconds * 1000 >= ms), "0s")
