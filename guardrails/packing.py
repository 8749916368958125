"""
A session's state as a small block of bytes, so that a store can keep it anywhere.
"""

import json
import struct

from typing import Any, Final

import orjson

from .errors import SessionError
from .state import Entry, EntryStatus, Pending, SessionState, pending_key
from .types import ERROR_TYPES


VERSION: Final = 1
STATUSES: Final[tuple[EntryStatus, ...]] = ("running", "ok", "error", "expired")
TOTALS: Final = (
    "started_ms",
    "now_ms",
    "n",
    "seq",
    "calls",
    "turns",
    "cost",
    "tokens",
    "requests",
    "unpriced",
    "held_cost",
    "held_tokens",
    "turn",
    "turn_expects",
    "turn_decided",
    "turn_admitted",
    "turn_strikes",
    "denied_turns",
    "streak",
    "streak_failures",
    "changed_seq",
    "behind_ms",
)
_HEAD = struct.Struct("<BBHI")
"""Version, 1 where the JSON holds what only Python's own module reads, entries, bytes of the name table."""
_ENTRY = struct.Struct("<IHqqqiBBB")
"""seq, tool, sig, result hash, time, milliseconds until a retry, status, error type + 1, retries left and two flags."""
_MAX_WAIT: Final = 2**31 - 1
_MAX_RETRIES: Final = 63


def pack(state: SessionState) -> bytes:
    """
    *state* as bytes; `unpack` gives an equal state.
    """
    names = list(dict.fromkeys(entry.tool for entry in state.window))
    window = b"".join(
        _ENTRY.pack(
            entry.seq,
            names.index(entry.tool),
            entry.sig or 0,
            entry.result_hash,
            entry.at_ms,
            int(min(max(0, entry.retry_at_ms - entry.at_ms), _MAX_WAIT)) if entry.retry_at_ms else -1,
            STATUSES.index(entry.status),
            0 if entry.error_type is None else ERROR_TYPES.index(entry.error_type) + 1,
            int(min(max(0, entry.retries_left), _MAX_RETRIES)) * 4 + entry.changes * 2 + (entry.sig is not None),
        )
        for entry in state.window
    )
    rest: dict[str, Any] = {"t": [getattr(state, name) for name in TOTALS], "s": state.streak_tool}
    for key, value in (
        ("m", state.meters),
        ("l", state.limits),
        ("r", state.reserved),
        ("p", state.problems),
        ("x", state.exhausted),
        ("c", state.closed),
        ("i", state.run),
        ("o", _admissions(state)),
    ):
        if value:
            rest[key] = value
    table, totals, odd = _json(names, rest)
    return _HEAD.pack(VERSION, odd, len(state.window), len(table)) + table + window + totals


def _json(names: list[str], rest: dict[str, Any]) -> tuple[bytes, bytes, bool]:
    """
    The two as JSON, and whether orjson cannot write it: names with lone surrogates, counters above 64 bits.
    """
    try:
        return orjson.dumps(names), orjson.dumps(rest), False
    except TypeError:
        table, totals = (json.dumps(said, separators=(",", ":")).encode() for said in (names, rest))
        return table, totals, True


def unpack(packed: bytes) -> SessionState:
    """
    The state that `pack` made these bytes of.

    Raises SessionError where they are not of a version that is known.
    """
    try:
        version, odd, entries, size = _HEAD.unpack_from(packed)
        if version != VERSION:
            raise SessionError(f"session state of version {version}; this library reads {VERSION}")
        loads = json.loads if odd else orjson.loads
        at = _HEAD.size
        names = loads(packed[at : at + size])
        at += size
        window = []
        for index in range(entries):
            seq, tool, sig, digest, at_ms, wait, status, error, rest = _ENTRY.unpack_from(
                packed, at + index * _ENTRY.size
            )
            window.append(
                Entry(
                    seq,
                    names[tool],
                    sig if rest & 1 else None,
                    at_ms,
                    bool(rest & 2),
                    STATUSES[status],
                    ERROR_TYPES[error - 1] if error else None,
                    digest,
                    at_ms + wait if wait >= 0 else 0,
                    rest >> 2,
                )
            )
        return _state(window, loads(packed[at + entries * _ENTRY.size :]))
    except (struct.error, ValueError, LookupError, TypeError) as error:
        raise SessionError(f"session state cannot be read: {error}") from None


def _state(window: list[Entry], rest: dict[str, Any]) -> SessionState:
    state = SessionState(**dict(zip(TOTALS, rest["t"], strict=True)), streak_tool=rest["s"], window=window)
    state.latest = {entry.sig: entry.seq for entry in window}
    state.meters = rest.get("m", {})
    state.limits = rest.get("l", {})
    state.reserved = rest.get("r", {})
    state.problems = rest.get("p", [])
    state.exhausted = tuple(rest["x"]) if "x" in rest else None
    state.closed = rest.get("c", False)
    state.run = rest.get("i", "")
    by_seq = {entry.seq: entry for entry in window}
    for packed in rest.get("o", []):
        pending = _open(packed, by_seq)
        state.pending[pending_key(pending.id, pending.sig, pending.seq)] = pending
    return state


def _admissions(state: SessionState) -> list[list[Any]]:
    first = state.window[0].seq if state.window else 0
    return [
        [
            pending.seq,
            pending.n,
            pending.id,
            pending.expires_ms,
            pending.cost,
            pending.tokens,
            pending.turn,
            pending.claimed,
            pending.hints,
            pending.limit,
            # An admission can outlive the window; else its entry there says this.
            None if pending.seq >= first else [pending.tool, pending.sig, pending.at_ms],
        ]
        for pending in state.pending.values()
    ]


def _open(packed: list[Any], by_seq: dict[int, Entry]) -> Pending:
    seq, n, call_id, expires_ms, cost, tokens, turn, claimed, hints, limit, own = packed
    entry = by_seq[seq] if own is None else Entry(seq, *own)
    return Pending(
        seq,
        n,
        call_id,
        entry.tool,
        entry.sig,
        entry.at_ms,
        expires_ms,
        cost,
        tokens,
        turn,
        claimed,
        entry,
        tuple((code, hint) for code, hint in hints),
        None if limit is None else (limit[0], limit[1]),
    )
