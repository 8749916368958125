"""
A session's state as a small block of bytes, so that a store can keep it anywhere.
"""

import json
import struct

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from typing import Any, Final

import orjson

from guardrails.core.state.entries import EntryStatus, Hold, pending_key
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.types import ERROR_TYPES

from .calls import ERROR_NUMBERS, Memo, numbers, packed_admissions, packed_trail, unpacked_admission, unpacked_trail


VERSION: Final = 6
"""The one version that is written and read; 7 was that of scopes with leases."""
HEAD: Final = struct.Struct("<BBHI")
"""Version, 1 where the JSON holds what only Python's own module reads, entries, bytes of the name table."""
ENTRY: Final = struct.Struct("<IqqqiBBBBB")
"""seq, sig, result hash, time, milliseconds until a retry, status and six flags, error type + 1 and a flag, retries
left and two flags, turn, calls admitted beside it."""
CLOSER: Final = struct.Struct("<qI")
"""Sketch and steady part of the result; only of calls that were looked at so closely."""
LOOKED_AT: Final = 128
"""The flag at an error type that a `CLOSER` follows."""
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
    "shared",
    "",
    "refused_turns",
    "turn_refused",
    "implied",
    "",
    "turn_ms",
    "",
)
"""By place; a total that is kept no more is written as 0."""
_STATUS: Final = {status: place for place, status in enumerate(STATUSES)}
_FITS: Final = (-(2**63), 2**64)
"""Counters outside of it are written as text: orjson has no larger numbers."""
_MAX_WAIT: Final = 2**31 - 1
_MAX_RETRIES: Final = 63


def pack(state: SessionState, memo: Memo | None = None) -> bytes:
    """
    Returns *state* as bytes; `unpack` gives an equal state. *memo* is the memory of the same state from before.
    """
    memo = memo or Memo()
    names: dict[str, int] = {}
    tools = [names.setdefault(entry.tool, len(names)) for entry in state.window]
    calls = memo.calls
    window = b"".join([calls.get(entry.seq) or _kept(entry, calls) for entry in state.window])
    if len(calls) > 2 * len(tools):
        for seq in calls.keys() - {entry.seq for entry in state.window}:
            del calls[seq]
    trail = packed_trail(state, names, memo)
    rest: dict[str, Any] = {"t": [getattr(state, name, 0) for name in TOTALS], "s": state.streak_tool}
    # Nine of ten states have few of these: to ask each is quicker than to gather all.
    if state.meters:
        lowest, highest = _FITS
        rest["m"] = {key: value if lowest <= value < highest else str(value) for key, value in state.meters.items()}
    if state.pending:
        rest["o"] = packed_admissions(state)
    if trail:
        rest["h"] = trail
    for key, value in _optional(state):
        if value:
            rest[key] = value
    if state.closed:
        rest["c"] = True
    if state.told:
        rest["e"] = b2a_base64(state.told, newline=False).decode()
    table, totals, odd = _json([*names], rest)
    head = HEAD.pack(VERSION, odd, len(tools), len(table))
    return b"".join((head, table, struct.pack(f"<{len(tools)}H", *tools), window, totals))


def shown(state: SessionState) -> bytes:
    """
    Returns the same for a record, without the arguments that are shown to a person who is asked.
    """
    copy = unpack(pack(state))
    for pending in copy.pending.values():
        if pending.parked is not None:
            pending.parked.shown = ""
    return pack(copy)


def _optional(state: SessionState) -> Iterator[tuple[str, Any]]:
    yield "i", state.run
    yield "l", state.limits
    yield "r", state.reserved
    yield "p", state.refusals
    yield "x", state.exhausted
    yield "w", state.work
    yield "b", state.working
    yield "v", state.moving
    yield "k", state.holds
    yield "u", state.used
    yield "d", state.stood_ms
    yield "q", state.asking
    yield "a", [[sig, *said] for sig, said in state.answers.items()]


def _entry(entry: Entry) -> bytes:
    closer = entry.sketch or entry.steady
    packed = ENTRY.pack(*_fields(entry, closer))
    return packed + CLOSER.pack(entry.sketch, entry.steady) if closer else packed


def _fields(entry: Entry, closer: int) -> tuple[int, ...]:
    wait = int(min(max(0, entry.retry_at_ms - entry.at_ms), _MAX_WAIT)) if entry.retry_at_ms else -1
    retries = int(min(max(0, entry.retries_left), _MAX_RETRIES))
    return (
        entry.seq,
        entry.sig or 0,
        entry.result_hash,
        entry.at_ms,
        wait,
        _STATUS[entry.status]
        + len(STATUSES) * (entry.explored + 2 * entry.empty + 4 * entry.unfinished + 8 * entry.little)
        + 16 * len(STATUSES) * (entry.retried + 2 * entry.another),
        ERROR_NUMBERS[entry.error_type] | (LOOKED_AT if closer else 0),
        retries * 4 + entry.changes * 2 + (entry.sig is not None),
        entry.turn,
        entry.beside,
    )


def _kept(entry: Entry, settled: dict[int, bytes]) -> bytes:
    packed = _entry(entry)
    if entry.status != "running":
        settled[entry.seq] = packed
    return packed


def _json(names: list[str], rest: dict[str, Any]) -> tuple[bytes, bytes, bool]:
    """
    Returns the two as JSON, and whether orjson cannot write it: names with lone surrogates.
    """
    try:
        return orjson.dumps(names), orjson.dumps(rest), False
    except TypeError:
        table, totals = (json.dumps(said, separators=(",", ":")).encode() for said in (names, rest))
        return table, totals, True


def unpack(packed: bytes) -> SessionState:
    """
    Returns the state that `pack` made these bytes of.

    Raises StateUnreadable if they are damaged, or not of a version that is known.
    """
    try:
        version = packed[0]  # all that another version is sure to have in common
        if version != VERSION:
            raise StateUnreadable(
                f"is of version {version}, and this version of the library reads {VERSION}: use the one that wrote it; "
                "`forget` it only to start it afresh"
            )
        _, odd, entries, size = HEAD.unpack_from(packed)
        loads = json.loads if odd else orjson.loads
        at = HEAD.size
        names = loads(packed[at : at + size])
        at += size
        tools = struct.unpack_from(f"<{entries}H", packed, at)
        window = []
        at += 2 * entries
        for tool in tools:
            seq, sig, digest, at_ms, wait, status, error, rest, turn, beside = ENTRY.unpack_from(packed, at)
            at += ENTRY.size
            sketch = steady = 0
            if error & LOOKED_AT:
                sketch, steady = CLOSER.unpack_from(packed, at)
                at += CLOSER.size
                error &= ~LOOKED_AT
            window.append(
                Entry(
                    seq,
                    names[tool],
                    sig if rest & 1 else None,
                    at_ms,
                    bool(rest & 2),
                    status=STATUSES[status % len(STATUSES)],
                    error_type=ERROR_TYPES[error - 1] if error else None,
                    result_hash=digest,
                    retry_at_ms=at_ms + wait if wait >= 0 else 0,
                    retries_left=rest >> 2,
                    explored=bool(status >> 2 & 1),
                    turn=turn,
                    beside=beside,
                    sketch=sketch,
                    steady=steady,
                    empty=bool(status >> 3 & 1),
                    unfinished=bool(status >> 4 & 1),
                    little=bool(status >> 5 & 1),
                    retried=bool(status >> 6 & 1),
                    another=bool(status >> 7),
                )
            )
        return _state(window, names, loads(packed[at:]))
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise StateUnreadable(
            f"cannot be read ({error}): put a copy of it back; `forget` it only to start it afresh"
        ) from None


def _state(window: list[Entry], names: list[str], rest: dict[str, Any]) -> SessionState:
    totals = {name: total for name, total in zip(TOTALS, numbers(rest["t"]), strict=True) if name}
    state = SessionState(**totals, streak_tool=rest["s"], window=window)
    state.latest = {entry.sig: entry.seq for entry in window}
    state.meters = {key: int(value) for key, value in rest["m"].items()} if "m" in rest else {}
    state.limits = rest.get("l", {})
    numbers([*state.limits.values()])
    state.reserved = rest.get("r", {})
    state.refusals = rest.get("p", [])
    state.exhausted = tuple(rest["x"]) if "x" in rest else None
    state.closed = rest.get("c", False)
    [state.work], state.working = numbers([rest.get("w", 0)]), rest.get("b", {})
    state.run, state.moving = rest.get("i", ""), rest.get("v", [])
    state.holds = {key: Hold(*held) for key, held in rest["k"].items()} if "k" in rest else {}
    state.used = {name: tuple(sums) for name, sums in rest["u"].items()} if "u" in rest else {}
    [state.stood_ms], state.asking = numbers([rest.get("d", 0)]), rest.get("q", False)
    state.answers = {sig: (answer, reason) for sig, answer, reason in rest.get("a", ())}
    state.told = a2b_base64(rest["e"]) if "e" in rest else b""
    state.trail = unpacked_trail(rest.get("h", ()), window, names)
    by_seq = {entry.seq: entry for entry in window}
    for packed in rest.get("o", []):
        pending = unpacked_admission(packed, by_seq)
        state.pending[pending_key(pending.id, pending.sig, pending.seq)] = pending
        state.parked += pending.parked is not None
    return state
