"""
A session's state as a small block of bytes, so that a store can keep it anywhere.
"""

import json
import struct

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

import orjson

from guardrails.core.retries.context import Settled
from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.types import ERROR_TYPES

from .entries import EntryStatus, Hold, Parked, pending_key
from .state import NEVER, Entry, Pending, SessionState


ERROR_NUMBERS: Final[dict[str | None, int]] = {None: 0, **{kind: place for place, kind in enumerate(ERROR_TYPES, 1)}}
_PARKED: Final = ("at_ms", "lasts_ms", "code", "message", "hint", "reason", "digest", "shown", "approved", "begun")
_parked = attrgetter(*_PARKED)
_OVER: Final = frozenset({"ok", "error"})

_Like = tuple[int, int | None]
"""The `seq` of an entry of the window, -1 where none is alike, and milliseconds."""


class Memo:
    """
    The packed form of a state's calls that are over, kept from one time to the next. These calls do not change any
    more, and packing them again is most of the work.
    """

    __slots__ = ("calls", "likes", "trail")

    def __init__(self) -> None:
        self.calls: dict[int, bytes] = {}
        self.trail: list[Settled] = []
        self.likes: list[_Like] = []


def packed_trail(state: SessionState, names: dict[str, int], memo: Memo) -> list[int | None]:
    """
    Returns the calls that are over as numbers: of each its `seq` in the window and its duration, or all of it.
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
            made += (-1, names.setdefault(tool, len(names)), sig, ERROR_NUMBERS[error], ended_ms)
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


def unpacked_trail(packed: Iterable[int | None], window: list[Entry], names: list[str]) -> list[Settled]:
    """
    Returns the calls that `packed_trail` made these numbers of.
    """
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


def packed_admissions(state: SessionState) -> list[list[Any]]:
    """
    Returns the admissions that are open.
    """
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
            None if pending.seq >= first else [pending.tool, pending.sig, pending.at_ms, pending.entry.changes],
            *([] if pending.parked is None else [_parked(pending.parked)]),
        ]
        for pending in state.pending.values()
    ]


def numbers(said: list[Any]) -> list[Any]:
    """
    Returns the whole numbers *said*. Raises ValueError if one is none: no limit would hold by it.
    """
    if not {int}.issuperset(map(type, said)):
        raise ValueError("what counts is no whole number")
    return said


def unpacked_admission(packed: list[Any], by_seq: dict[int, Entry]) -> Pending:
    """
    Returns one of those that `packed_admissions` made; *by_seq* are the entries of the window.
    """
    seq, n, call_id, expires_ms, cost, tokens, turn, claimed, hints, limit, own, *waits = packed
    numbers([seq, n, expires_ms, cost, tokens, turn])
    entry = by_seq[seq] if own is None else Entry(seq, *own)
    pending = Pending.opened(
        call_id,
        entry,
        n=n,
        expires_ms=expires_ms,
        cost=cost,
        tokens=tokens,
        turn=turn,
        claimed=claimed,
        hints=tuple((code, hint) for code, hint in hints),
        limit=None if limit is None else (limit[0], limit[1]),
    )
    for values in waits:
        pending.parked = Parked(**dict(zip(_PARKED, values, strict=True)))
        numbers([pending.parked.at_ms, pending.parked.lasts_ms])
    return pending


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
