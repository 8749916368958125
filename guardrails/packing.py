"""
A session's state as a small block of bytes, so that a store can keep it anywhere.
"""

import json
import struct

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

import orjson

from .errors import SessionError
from .retries.context import Settled
from .state import NEVER, Entry, EntryStatus, Pending, SessionState, pending_key
from .types import ERROR_TYPES


VERSION: Final = 2
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
)
_HEAD = struct.Struct("<BBHI")
"""Version, 1 where the JSON holds what only Python's own module reads, entries, bytes of the name table."""
_ENTRY = struct.Struct("<IqqqiBBB")
"""seq, sig, result hash, time, milliseconds until a retry, status, error type + 1, retries left and two flags."""
_totals = attrgetter(*TOTALS)
_STATUS: Final = {status: place for place, status in enumerate(STATUSES)}
_ERROR: Final[dict[str | None, int]] = {None: 0, **{kind: place for place, kind in enumerate(ERROR_TYPES, 1)}}
_OVER: Final = frozenset({"ok", "error"})
_FITS: Final = (-(2**63), 2**64)
"""Counters outside of it are written as text: orjson has no larger numbers."""
_MAX_WAIT: Final = 2**31 - 1
_MAX_RETRIES: Final = 63


_Like = tuple[int, int | None]
"""The `seq` of an entry of the window, -1 where none is alike, and milliseconds."""


class Memo:
    """
    What a state's calls that are over were packed as, from one time to the next: they do not change any more, and
    writing them anew is most of the work.
    """

    __slots__ = ("calls", "likes", "trail")

    def __init__(self) -> None:
        self.calls: dict[int, bytes] = {}
        self.trail: list[Settled] = []
        self.likes: list[_Like] = []


def pack(state: SessionState, memo: Memo | None = None) -> bytes:
    """
    *state* as bytes; `unpack` gives an equal state. *memo* is what was kept of the same state before.
    """
    memo = memo or Memo()
    names: dict[str, int] = {}
    tools = [names.setdefault(entry.tool, len(names)) for entry in state.window]
    calls = memo.calls
    window = b"".join([calls.get(entry.seq) or _kept(entry, calls) for entry in state.window])
    if len(calls) > 2 * len(tools):
        for seq in calls.keys() - {entry.seq for entry in state.window}:
            del calls[seq]
    trail = _trail(state, names, memo)
    rest: dict[str, Any] = {"t": _totals(state), "s": state.streak_tool}
    for key, value in (
        ("m", {key: value if _FITS[0] <= value < _FITS[1] else str(value) for key, value in state.meters.items()}),
        ("l", state.limits),
        ("r", state.reserved),
        ("p", state.problems),
        ("x", state.exhausted),
        ("c", state.closed),
        ("i", state.run),
        ("o", _admissions(state)),
        ("h", trail),
    ):
        if value:
            rest[key] = value
    table, totals, odd = _json([*names], rest)
    head = _HEAD.pack(VERSION, odd, len(tools), len(table))
    return b"".join((head, table, struct.pack(f"<{len(tools)}H", *tools), window, totals))


def _entry(entry: Entry) -> bytes:
    wait = int(min(max(0, entry.retry_at_ms - entry.at_ms), _MAX_WAIT)) if entry.retry_at_ms else -1
    retries = int(min(max(0, entry.retries_left), _MAX_RETRIES))
    return _ENTRY.pack(
        entry.seq,
        entry.sig or 0,
        entry.result_hash,
        entry.at_ms,
        wait,
        _STATUS[entry.status] + len(STATUSES) * entry.explored,
        _ERROR[entry.error_type],
        retries * 4 + entry.changes * 2 + (entry.sig is not None),
    )


def _kept(entry: Entry, settled: dict[int, bytes]) -> bytes:
    packed = _entry(entry)
    if entry.status != "running":
        settled[entry.seq] = packed
    return packed


def _trail(state: SessionState, names: dict[str, int], memo: Memo) -> list[int | None]:
    """
    The calls that are over as numbers: each the `seq` of its like in the window and how long it took, or all of it.
    """
    trail, window = state.trail, state.window
    if trail != memo.trail:
        memo.likes, memo.trail = _likes(trail, window, memo), trail.copy()
    first = window[0].seq if window else NEVER
    made: list[int | None] = []
    for like, (tool, sig, error, ended_ms) in zip(memo.likes, trail, strict=True):
        if like[0] >= first:
            made += like
        else:
            made += (-1, names.setdefault(tool, len(names)), sig, _ERROR[error], ended_ms)
    return made


def _likes(trail: list[Settled], window: list[Entry], memo: Memo) -> list[_Like]:
    older = len(trail) - 1
    if older > 0 and memo.trail[-older:] == trail[:older]:
        # One more, as nearly always: the others are what they were.
        return [*memo.likes[-older:], _like(trail[older], reversed(window))]
    alike: dict[tuple[str, int | None, str | None], Entry] = {}
    alike.update(((entry.tool, entry.sig, entry.error_type), entry) for entry in window if entry.status in _OVER)
    return [_like(settled, filter(None, [alike.get(settled[:3])])) for settled in trail]


def _like(settled: Settled, entries: Iterable[Entry]) -> _Like:
    tool, sig, error, ended_ms = settled
    for entry in entries:
        # One that still runs may yet end in another way.
        if entry.sig == sig and entry.tool == tool and entry.error_type == error and entry.status in _OVER:
            return entry.seq, None if ended_ms is None else ended_ms - entry.at_ms
    return -1, None


def _settled(packed: Iterable[int | None], window: list[Entry], names: list[str]) -> list[Settled]:
    numbers: Iterator[Any] = iter(packed)
    made = []
    by_seq = {entry.seq: entry for entry in window}
    for seq in numbers:
        if seq >= 0:
            entry, took = by_seq[seq], next(numbers)
            ended_ms = None if took is None else entry.at_ms + took
            made.append(Settled(entry.tool, entry.sig, entry.error_type, ended_ms))
        else:
            tool, sig, error, ended_ms = (next(numbers) for _ in range(4))
            made.append(Settled(names[tool], sig, ERROR_TYPES[error - 1] if error else None, ended_ms))
    return made


def _json(names: list[str], rest: dict[str, Any]) -> tuple[bytes, bytes, bool]:
    """
    The two as JSON, and whether orjson cannot write it: names with lone surrogates.
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
        tools = struct.unpack_from(f"<{entries}H", packed, at)
        at += 2 * entries
        window = []
        for index, tool in enumerate(tools):
            seq, sig, digest, at_ms, wait, status, error, rest = _ENTRY.unpack_from(packed, at + index * _ENTRY.size)
            window.append(
                Entry(
                    seq,
                    names[tool],
                    sig if rest & 1 else None,
                    at_ms,
                    bool(rest & 2),
                    STATUSES[status % len(STATUSES)],
                    ERROR_TYPES[error - 1] if error else None,
                    digest,
                    at_ms + wait if wait >= 0 else 0,
                    rest >> 2,
                    status >= len(STATUSES),
                )
            )
        return _state(window, names, loads(packed[at + entries * _ENTRY.size :]))
    except (struct.error, ValueError, LookupError, TypeError, RuntimeError, StopIteration) as error:
        raise SessionError(f"session state cannot be read: {error}") from None


def _state(window: list[Entry], names: list[str], rest: dict[str, Any]) -> SessionState:
    state = SessionState(**dict(zip(TOTALS, rest["t"], strict=True)), streak_tool=rest["s"], window=window)
    state.latest = {entry.sig: entry.seq for entry in window}
    state.meters = {key: int(value) for key, value in rest["m"].items()} if "m" in rest else {}
    state.limits = rest.get("l", {})
    state.reserved = rest.get("r", {})
    state.problems = rest.get("p", [])
    state.exhausted = tuple(rest["x"]) if "x" in rest else None
    state.closed = rest.get("c", False)
    state.run = rest.get("i", "")
    state.trail = _settled(rest.get("h", ()), window, names)
    by_seq = {entry.seq: entry for entry in window}
    for packed in rest.get("o", []):
        pending = _open(packed, by_seq)
        state.pending[pending_key(pending.id, pending.sig, pending.seq)] = pending
    return state


def _admissions(state: SessionState) -> list[list[Any]]:
    first = state.window[0].seq if state.window else NEVER
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
