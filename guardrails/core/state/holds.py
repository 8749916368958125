"""
Amounts that are held beside the estimates of admissions. Some are for model requests until they are charged. Others are
for calls of tools that declare no estimate, by the average use of their calls.
"""

from typing import Final

from .entries import LAPSED, Hold, Pending
from .state import SessionState


MOST: Final = 256
"""Holds of a session; the oldest one lapses for the next."""
AVERAGED: Final = 32
"""Tools of a session whose average is kept."""
RESPONSES: Final = ""
"""The name of the average of model responses."""
NOTHING: Final = 0, 0
"""Micro-dollars and tokens."""


def hold(state: SessionState, key: str, held: Hold) -> None:
    """
    Hold under *key*, which is one of a session of this name that lived before at worst.
    """
    while key in state.holds or len(state.holds) >= MOST:
        gone = key if key in state.holds else next(iter(state.holds))
        _lapse(state, gone)
        state.holds.pop(gone, None)
    if held.said:
        state.held_cost += held.cost
        state.held_tokens += held.tokens
    state.holds[key] = held


def free(state: SessionState, key: str) -> None:
    """
    Give back the amounts held under *key*, or those charged for it when it lapsed.
    """
    held = state.holds.pop(key, None)
    if held is None:
        return
    if held.ends_ms == LAPSED:
        state.cost -= held.cost
        state.tokens -= held.tokens
    elif held.said:
        state.held_cost -= held.cost
        state.held_tokens -= held.tokens


def prolong(state: SessionState, key: str, ends_ms: int) -> None:
    """
    Hold what is held under *key*, and has not lapsed, until *ends_ms*.
    """
    held = state.holds.get(key)
    if held is not None and held.ends_ms != LAPSED:
        state.holds[key] = held._replace(ends_ms=ends_ms)


def free_guess(state: SessionState, pending: Pending) -> None:
    """
    Give back what is guessed of a call that nobody settles.
    """
    if state.holds:
        free(state, guess_key(pending))


def guess_key(pending: Pending) -> str:
    """
    Returns the key under which the guess of an admitted call is held. In a scope no call has an event of its own.
    """
    return f"c{pending.seq}" if pending.n else f"{pending.id}#c{pending.seq}"


def guessed(state: SessionState) -> tuple[int, int]:
    """
    Returns the micro-dollars and tokens that guesses hold. Guesses stand in the way of other guesses and of model
    requests only. A declared estimate is held even if a host never tells how its requests end.
    """
    guesses = [held for held in state.holds.values() if not held.said]
    return sum(held.cost for held in guesses), sum(held.tokens for held in guesses)


def lapse(state: SessionState, now_ms: int) -> None:
    """
    End the holds that nobody has settled by *now_ms*: an estimate that was said stays charged, a guess comes back.
    """
    for key in [key for key, held in state.holds.items() if LAPSED < held.ends_ms <= now_ms]:
        _lapse(state, key)


def _lapse(state: SessionState, key: str) -> None:
    held = state.holds[key]
    if held.ends_ms == LAPSED:
        return
    free(state, key)
    if held.said:
        state.cost += held.cost
        state.tokens += held.tokens
        state.holds[key] = held._replace(ends_ms=LAPSED)


def fitting(state: SessionState, cost: int, tokens: int, *, guesses: bool = False) -> str | None:
    """
    Returns the request of a response that does not name its request. Among the requests that hold enough, it is the one
    that holds least, so that the other holds cover the other requests. Returns None if no request is open. With
    *guesses* only requests without a declared estimate count.
    """
    open_ = {key: held for key, held in state.holds.items() if key.isdigit() and not (guesses and held.said)}
    enough = [
        key for key, of in open_.items() if of.cost >= cost * (of.cost > 0) and of.tokens >= tokens * (of.tokens > 0)
    ]
    size = lambda key: (open_[key].tokens, open_[key].cost)  # noqa: E731
    return min(enough, key=size) if enough else max(open_, key=size, default=None)


def note_used(state: SessionState, name: str, cost: int, tokens: int) -> None:
    """
    Let what a call of the tool *name*, or a response, used count for the average.
    """
    if name in state.used or len(state.used) < AVERAGED:
        count, costs, all_tokens = state.used.get(name, (0, 0, 0))
        state.used[name] = count + 1, costs + cost, all_tokens + tokens


def average(state: SessionState, name: str) -> tuple[int, int]:
    """
    Returns (micro-dollars, tokens) that calls of the tool *name*, or responses, have used on average, rounded up; 0 if
    nothing is known.
    """
    count, cost, tokens = state.used.get(name, (1, 0, 0))
    return -(-cost // count), -(-tokens // count)
