"""
The calls of a session as a few numbers: the latest that are over, and those that are open. Most of the calls that are
over are in its window too.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

from guardrails.core.retries.context import Settled
from guardrails.core.state.entries import Parked
from guardrails.core.state.state import NEVER, Entry, Pending, SessionState
from guardrails.core.values.types import ERROR_TYPES


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
