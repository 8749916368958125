"""
The turns of a session: those that the host tells or, if it tells none, those that the times of calls imply.

A call that starts after the last one ended is a turn of its own; calls that overlap are one, as a fan-out is.
"""

from typing import Final

from .entries import Pending
from .state import SessionState


TOGETHER_MS: Final = 100
"""How soon after the first another refused call is of its turn: a model takes longer to read a refusal and answer."""
OVERLAP_MS: Final = 60_000
"""How long calls that overlap are one turn, from the first of them: what never ends must not hide a loop."""
KEYS: Final = 64
"""Responses whose keys are kept: what is told again after so many others counts again."""
KEY_BYTES: Final = 6
"""Of a hash of a key; the chance that one of 64 others has the same is 1 in 10^12."""


def is_told(state: SessionState, key: bytes | None, *, charged: bool = False) -> bool:
    """
    Returns whether the response of *key* was told already, or even *charged*. One without a key never was.
    """
    return key is not None and (_marked(key) in _keys(state) or (not charged and key in _keys(state)))


def note_told(state: SessionState, key: bytes | None, *, charged: bool = False) -> None:
    """
    Remember that the response of *key*, if it has one, was told, or *charged*.
    """
    if key is not None:
        kept = [_marked(key) if charged and one == key else one for one in _keys(state)]
        if not charged or _marked(key) not in kept:
            kept.append(_marked(key) if charged else key)
        state.told = b"".join(kept[-KEYS:])


def _keys(state: SessionState) -> list[bytes]:
    return [state.told[at : at + KEY_BYTES] for at in range(0, len(state.told), KEY_BYTES)]


def _marked(key: bytes) -> bytes:
    return key[:-1] + bytes((key[-1] | 1,))


def end_turn(state: SessionState) -> None:
    """
    Close the present turn: one that only repeated refused calls is a strike.
    """
    count_refusals(state)
    state.turn_decided = state.turn_admitted = 0


def begin_turn(state: SessionState, calls: int) -> None:
    """
    Open the next turn, of *calls* calls (0: unknown).
    """
    state.turn += 1
    state.turn_expects = calls
    state.asking = False


def leave_turn(state: SessionState, pending: Pending) -> None:
    """
    Take a call that never ran, and is open no more, out of its turn. A turn without any other call in the window is not
    counted.
    """
    entry, window = pending.entry, state.window
    if entry.another:
        # The attempt before it is of the turn already.
        entry.turn = 0
        return
    if entry.tool == state.streak_tool and all(
        one.tool == entry.tool or not one.turn for one in window if one.seq > entry.seq
    ):
        state.streak -= state.streak > 0
    # No call is of the turn 0.
    mark, entry.turn = entry.turn, 0
    if pending.turn == state.turn:
        state.turn_decided -= 1
        state.turn_admitted -= 1
        state.turns -= state.turn_admitted == 0
    elif entry.seq >= window[0].seq and all(one.turn != pending.turn for one in state.pending.values()):
        untold = 0 if pending.turn else state.implied
        beside = [0 < one.turn <= untold if untold else one.turn == mark for one in window]
        begins = window[0].seq == 1 or (window[0].turn > 0 and not beside[0])
        state.turns -= begins and not any(beside)


def count_refusals(state: SessionState) -> None:
    """
    Count the present turn, which is over, if it had nothing but refusals.
    """
    if state.turn_refused and state.only_refused:
        state.refused_turns += 1
        state.denied_turns += state.turn_strikes > 0
    state.turn_strikes = state.turn_refused = 0


def imply_turn(state: SessionState, sig: int | None = None) -> bool:
    """
    Open the next turn unless a call of *sig* that starts now is of the present one. Returns whether it did.

    The turns that a budget counts are those that are announced: they stay what they are.
    """
    begins = not _goes_on(state, sig)
    if begins:
        count_refusals(state)
        state.implied += 1
        state.turn_ms = state.now_ms
    return begins


def _goes_on(state: SessionState, sig: int | None) -> bool:
    """
    Returns whether another call of the present turn still runs, or this very call: calls that overlap are one turn, as a fan-out
    is. Refused calls do not run, so those of a fan-out are told by how soon they come.
    """
    if not state.implied:
        return False
    mark, age = state.mark, state.now_ms - state.turn_ms
    if state.turn_refused and state.only_refused and not state.refused_now(sig):
        return age <= TOGETHER_MS
    open_ = (pending for pending in state.pending.values() if pending.parked is None)
    return any(one.sig == sig or (one.entry.turn == mark and age <= OVERLAP_MS) for one in open_)


def note_again(state: SessionState, pending: Pending) -> None:
    """
    Keep that the library makes a call again, which was just settled and failed: the model hears of it once.
    """
    pending.entry.retried = True
    if pending.seq > state.seq - state.streak:
        state.streak_failures = max(0, state.streak_failures - 1)


def note_last(state: SessionState, sig: int | None) -> None:
    """
    Take `note_again` back: the model hears of the failure of *sig*, as no attempt follows it.
    """
    entry = next((entry for entry in reversed(state.window) if entry.sig == sig), None)
    if entry is not None and entry.retried:
        entry.retried = False
        if entry.seq > state.seq - state.streak:
            state.streak_failures += 1
