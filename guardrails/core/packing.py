"""
A state as bytes: the calls of its window as one row each, all else as JSON.

Version 7 is this library's; version 6 is that of 0.2.0, and is read (`packing_6`). A row that is over is packed once, see `Memo`.
"""

import json
import struct

from binascii import a2b_base64, b2a_base64
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, get_args

import orjson

from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.types import ERROR_TYPES

from .state import Entry, EntryStatus, Pending, Question, SessionState, Stage, Turn, Uncertain


VERSION: Final = 7
HEAD: Final = struct.Struct("<BBHI")
"""(version, whether the JSON has numbers of more than 64 bits, rows, bytes of the names of tools)"""
ENTRY: Final = struct.Struct("<IqqqiBBBBB")
CLOSER: Final = struct.Struct("<qI")
"""Of a call that a guard looked at closer: its arguments and its news."""
LOOKED_AT: Final = 128
STATUSES: Final[tuple[EntryStatus, ...]] = get_args(EntryStatus)
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
ERROR_NUMBERS: Final[dict[str | None, int]] = {None: 0, **{kind: place for place, kind in enumerate(ERROR_TYPES, 1)}}
TOTALS: Final = (
    *("n", "seq", "calls", "turns", "cost", "tokens", "started_ms", "now_ms", "behind_ms"),
    *("stood_ms", "shared"),
)
TURN: Final = ("number", "expects", "decided", "admitted", "implied", "since_ms")
_totals = attrgetter(*TOTALS, *(f"present.{name}" for name in TURN))
_question = attrgetter(*(each.name for each in fields(Question)))
_CAME: Final = (0, 8, 2, 4, 16)
"""The bit of each that may come."""
_CAME_BY: Final = tuple(next((came for came, bit in enumerate(_CAME) if flags & bit), 0) for flags in range(64))
STATUS: Final = 3
"""The bits of a status; those above it are flags."""
_STATUS: Final = {status: place for place, status in enumerate(STATUSES)}
_MAX_WAIT: Final = 2**31 - 1
_MAX_RETRIES: Final = 63


class Memo:
    """
    The rows of a session that do not change any more, by number.
    """

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: dict[int, bytes] = {}


def pack(state: SessionState, memo: Memo | None = None) -> bytes:
    """
    Returns *state* as bytes; *memo* is the one of the same state, packed before.
    """
    calls = {} if memo is None else memo.calls
    names: dict[str, int] = {}
    tools = [names.setdefault(entry.tool, len(names)) for entry in state.window]
    window = b"".join([calls.get(entry.seq) or _kept(entry, calls) for entry in state.window])
    if len(calls) > 2 * len(tools):
        for seq in calls.keys() - {entry.seq for entry in state.window}:
            del calls[seq]
    rest: dict[str, Any] = {"t": _totals(state)}
    for key, value in (
        ("i", state.run),
        ("g", state.own),
        ("o", [_admission(state, one) for one in state.pending.values()] if state.pending else None),
        ("l", state.limits),
        ("r", state.reserved),
        ("x", state.exhausted),
        ("w", state.present.refused),
        ("c", state.closed),
        ("u", [[sig, *said] for sig, said in state.uncertain.items()] if state.uncertain else None),
        ("e", b2a_base64(state.keys, newline=False).decode() if state.keys else None),
    ):
        if value:
            rest[key] = value
    table, totals, odd = _json([*names], rest)
    head = HEAD.pack(VERSION, odd, len(tools), len(table))
    return b"".join((head, table, struct.pack(f"<{len(tools)}H", *tools), window, totals))


def _json(names: list[str], rest: dict[str, Any]) -> tuple[bytes, bytes, bool]:
    try:
        return orjson.dumps(names), orjson.dumps(rest), False
    except TypeError:  # numbers of more than 64 bits, or half a surrogate in a name
        table, totals = (json.dumps(each, separators=(",", ":")).encode() for each in (names, rest))
        return table, totals, True


def _kept(entry: Entry, calls: dict[int, bytes]) -> bytes:
    packed = row(entry)
    if entry.status != "running":
        calls[entry.seq] = packed
    return packed


def row(entry: Entry) -> bytes:
    """
    Returns one call of the window as bytes.
    """
    closer = entry.sketch or entry.steady
    wait = int(min(max(0, entry.retry_at_ms - entry.at_ms), _MAX_WAIT)) if entry.retry_at_ms else -1
    flags = entry.explored + _CAME[entry.came] + 32 * entry.lasting
    retries = int(min(max(0, entry.retries_left), _MAX_RETRIES))
    packed = ENTRY.pack(
        entry.seq,
        entry.sig or 0,
        entry.result_hash,
        entry.at_ms,
        wait,
        _STATUS[entry.status] + len(STATUSES) * flags,
        ERROR_NUMBERS[entry.error_type] | (LOOKED_AT if closer else 0),
        retries * 4 + entry.changes * 2 + (entry.sig is not None),
        entry.turn,
        entry.beside,
    )
    return packed + CLOSER.pack(entry.sketch, entry.steady) if closer else packed


def _admission(state: SessionState, one: Pending) -> list[Any]:
    entry, first = one.entry, state.window[0].seq if state.window else 1 << 62
    # Of a call that the window does not have any more, what it is.
    own = None if entry.seq >= first else [entry.tool, entry.sig, entry.at_ms, entry.changes, entry.turn]
    numbers = [entry.seq, one.n, one.expires_ms, one.cost, one.tokens, one.turn, STAGES.index(one.stage) + 8 * one.once]
    return [numbers, one.id, one.hints, one.limit, None if one.question is None else _question(one.question), own]


def unpack(packed: bytes) -> SessionState:
    """
    Returns the state that *packed* is. Raises StateUnreadable if this version of the library cannot read it.
    """
    try:
        version = packed[0]
        if version not in (VERSION, VERSION - 1):
            raise StateUnreadable(
                f"is of version {version}, and this version of the library reads {VERSION}: use the one that wrote it; "
                "`forget` it only to start it afresh"
            )
        _, odd, rows, size = HEAD.unpack_from(packed)
        loads = json.loads if odd else orjson.loads
        at = HEAD.size
        names = loads(packed[at : at + size])
        tools = struct.unpack_from(f"<{rows}H", packed, at := at + size)
        at += 2 * rows
        window = []
        for tool in tools:
            entry, at = _entry(packed, at, names[tool])
            window.append(entry)
        rest = loads(packed[at:])
        if version < VERSION:
            from .packing_6 import state_of

            return state_of(window, rest)
        return _state(window, rest)
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise StateUnreadable(
            f"cannot be read ({error}): put a copy of it back; `forget` it only to start it afresh"
        ) from None


def _entry(packed: bytes, at: int, tool: str) -> tuple[Entry, int]:
    seq, sig, digest, at_ms, wait, status, error, rest, turn, beside = ENTRY.unpack_from(packed, at)
    at += ENTRY.size
    sketch = steady = 0
    if error & LOOKED_AT:
        sketch, steady = CLOSER.unpack_from(packed, at)
        at += CLOSER.size
        error &= ~LOOKED_AT
    made = Entry(seq, tool, sig if rest & 1 else None, at_ms, rest & 2 == 2, turn, sketch)
    made.status, made.result_hash = STATUSES[status & STATUS], digest
    # Others are those of the class.
    if steady:
        made.steady = steady
    if beside:
        made.beside = beside
    if error:
        made.error_type = ERROR_TYPES[error - 1]
        made.retries_left = rest >> 2
        if wait >= 0:
            made.retry_at_ms = at_ms + wait
    if status > STATUS:
        flags = status >> 2
        made.came, made.explored, made.lasting = _CAME_BY[flags], flags & 1 == 1, flags & 32 == 32
    return made, at


def whole(numbers: list[Any]) -> list[Any]:
    """
    Returns *numbers*. Raises ValueError if one is no whole number: what counts is never read as something else.
    """
    if not {int}.issuperset(map(type, numbers)):
        raise ValueError("what counts is no whole number")
    return numbers


def filled(state: SessionState) -> SessionState:
    """
    Returns *state* with what follows from its window.
    """
    state.latest = {entry.sig: entry.seq for entry in state.window}
    return state


def _state(window: list[Entry], rest: dict[str, Any]) -> SessionState:
    totals, present = whole(rest["t"])[: len(TOTALS)], rest["t"][len(TOTALS) :]
    state = SessionState(**dict(zip(TOTALS, totals, strict=True)), window=window)
    state.run, state.own = rest.get("i", ""), dict(rest.get("g", {}))
    state.present = Turn(**dict(zip(TURN, present, strict=True)), refused=rest.get("w", []))
    state.limits, state.reserved, state.closed = rest.get("l", {}), rest.get("r", {}), rest.get("c", False)
    whole([*state.limits.values()])
    if "x" in rest:
        code, message, hint = rest["x"]
        state.exhausted = code, message, hint
    state.uncertain = {sig: Uncertain(*each) for sig, *each in rest.get("u", ())}
    state.keys = a2b_base64(rest["e"]) if "e" in rest else b""
    by_seq = {entry.seq: entry for entry in window}
    for numbers, call_id, hints, limit, question, own in rest.get("o", ()):
        seq, n, expires_ms, cost, tokens, turn, stage = whole(numbers)
        entry = by_seq[seq] if own is None else Entry(seq, *own)
        one = Pending(entry, call_id, n, expires_ms, cost, tokens, turn, STAGES[stage % 8], stage >= 8)
        one.hints = tuple((code, hint) for code, hint in hints)
        one.limit = None if limit is None else (limit[0], limit[1], limit[2])
        one.question = None if question is None else Question(*question)
        state.pending[one.key] = one
    return filled(state)
