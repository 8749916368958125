"""
The turns of a session: those that the host tells or, if it tells none, those that the times of calls imply.

A model reads a result before it makes the next call, which takes more than milliseconds. So calls that overlap, or
start at nearly the same time, were made together. The evidence for that is in the state and in the time of the call
alone, so that a replay finds it again.
"""

from typing import Final

from guardrails.core.values.types import NO_TIME

from .entries import Pending
from .state import SessionState


TOGETHER_MS: Final = 10
"""Calls that start so soon after each other were made without knowing each other's results."""
BURST_MS: Final = 1_000
"""How long such calls are one turn, from the first of them; then each is one, so that so fast a loop ends too."""
OVERLAP_MS: Final = 60_000
"""The same of calls that start while another of their turn still runs: what never ends must not hide a loop."""
MOST: Final = 1_000
"""Events of a turn, after which the next call begins another: a loop ends too while the clock stands still."""


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


def imply_turn(state: SessionState, sig: int | None) -> bool:
    """
    Open the next turn unless a call of *sig* that starts now is of the present one. Returns whether it did.

    An equal call that comes after its twin was answered, or refused, is of the next turn however soon it comes. The turns
    that a budget counts are those that are told: they stay what they are.
    """
    begins, now = not _goes_on(state, sig), state.now_ms
    if begins:
        count_refusals(state)
        state.implied += 1
        state.turn_n = state.n
        if now - state.call_ms > TOGETHER_MS:
            state.turn_ms = now
    state.call_ms = now
    return begins


def part_turn(state: SessionState) -> None:
    """
    Let the next call be of the next turn, unless another of this one still runs, for a caller that tells no times
    either.
    """
    state.call_ms = NO_TIME


def _goes_on(state: SessionState, sig: int | None) -> bool:
    if not state.implied or state.n - state.turn_n >= MOST:
        return False
    now = state.now_ms
    apart = now - state.call_ms > TOGETHER_MS
    if apart and not state.pending:
        # Nothing still runs that it could be of one turn with: so it is with nearly every call.
        return False
    mark, window = state.mark, state.window
    if sig is not None:
        seq = state.latest.get(sig)
        twin = None if seq is None else window[seq - window[0].seq]
        if twin is not None and twin.status == "running":
            return True
        if (twin is not None and twin.turn == mark) or state.refused_now(sig):
            return False
    age = now - state.turn_ms
    if not apart and age <= BURST_MS:
        return True
    return age <= OVERLAP_MS and any(
        pending.entry.turn == mark and pending.parked is None for pending in state.pending.values()
    )


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
