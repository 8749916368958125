"""
The transitions that every event may make: time, numbers, counters, money, limits, and whether the session goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final

from guardrails.core.values.types import NO_TIME, Denial

from .state import METERS, OVERFLOW, SessionState


STEP_BACK_MS: Final = 1_000
"""A clock that is further behind was set back; less is two threads that read it before they took the lock."""
MEND_MS: Final = 3_600_000
"""A clock that was set back by more, and has caught up with the session's time at once, was wrong while it was behind."""
LEAP_MS: Final = 366 * 86_400_000
"""A clock that says so much later from one event to the next was set ahead: nobody pauses for that long."""


def read(latest_ms: int, behind_ms: int, now_ms: int) -> tuple[int, int]:
    """
    Returns the session's time when the clock says *now_ms*, and how far the clock is then behind it.

    Both *latest_ms* and *behind_ms* are the values at the latest event. The time goes on from a clock that was set.
    Standing still until the clock has caught up would make honest calls look like a rush. A leap that is believed would
    end the session for good.
    """
    if now_ms == NO_TIME:
        return latest_ms, behind_ms
    if behind_ms > MEND_MS and now_ms >= latest_ms:
        behind_ms = 0
    ahead = now_ms + behind_ms - latest_ms
    if -STEP_BACK_MS <= ahead <= LEAP_MS:
        return max(latest_ms, latest_ms + ahead), behind_ms
    return latest_ms, behind_ms - ahead


def begin_life(state: SessionState, draw: Callable[[], str]) -> None:
    """
    Name this life of a session if it has no name: a session that is forgotten may live again, and counts from 1 then.
    """
    if not state.run:
        state.run = draw()


def begin_again(state: SessionState) -> None:
    """
    Let a state be as new.
    """
    put(state, SessionState())


def put(state: SessionState, other: SessionState) -> None:
    """
    Let *state* be what *other* is.
    """
    for field in fields(state):
        setattr(state, field.name, getattr(other, field.name))


def time_of(state: SessionState, now_ms: int) -> int:
    """
    Returns the session's time when the clock says *now_ms*: it never goes back, nor does it leap by a year.
    """
    return now_ms if state.started_ms < 0 else read(state.now_ms, state.behind_ms, now_ms)[0]


def touch(state: SessionState, now_ms: int, *, responds: bool = False) -> int:
    """
    Let time pass; the clamped time. *responds*: by what happens now a model worked meanwhile.
    """
    if state.started_ms < 0:
        state.started_ms = state.now_ms = now_ms
    else:
        now, state.behind_ms = read(state.now_ms, state.behind_ms, now_ms)
        if state.parked and not responds:
            state.stood_ms = state.waited_ms(now)
        state.now_ms = now
    return state.now_ms


def number(state: SessionState) -> int:
    """
    Draw the number of the next event.
    """
    state.n += 1
    return state.n


def set_meters(state: SessionState, values: Mapping[str, int]) -> None:
    """
    Set counters. Raises TypeError, and sets none, if a value is no int by name: a guard made it.
    """
    for key, value in values.items():
        if type(value) is not int or type(key) is not str:
            raise TypeError(f"a counter is an int by name, not `{key!r:.40}`: `{value!r:.40}`")
    meters = state.meters
    for key, value in values.items():
        meters[key if key in meters or len(meters) < METERS - 1 else OVERFLOW] = value


def fork_meters(state: SessionState) -> dict[str, int]:
    """
    Let `put_back` undo all counts from now on; it takes the value that this returns.
    """
    before = state.meters
    state.meters = before.copy()
    return before


def put_back(state: SessionState, meters: dict[str, int]) -> None:
    """
    Undo what was counted since `fork_meters`.
    """
    state.meters = meters


def keep_cause(state: SessionState, cause: tuple[str, str]) -> None:
    """
    End the session by the (code, message) of *cause*; the first one stays.
    """
    if state.exhausted is None:
        state.exhausted = cause


def exhaust(state: SessionState, cause: Denial) -> None:
    """
    End the session by what *cause* says; the first one stays.
    """
    keep_cause(state, (cause.code, cause.message))


def go_on(state: SessionState) -> None:
    """
    Forget what has ended the session: it is to be found again, or is not so any more.
    """
    state.exhausted = None


def close(state: SessionState, cause: Denial) -> None:
    """
    End the session for good.
    """
    exhaust(state, cause)
    state.closed = True


def charge(state: SessionState, cost: int | None, tokens: int) -> None:
    """
    Charge a model response. The *cost* is in micro-dollars, None if its price is unknown.
    """
    state.asking = False
    state.unpriced += cost is None
    state.cost += cost or 0
    state.tokens += tokens


def count_request(state: SessionState) -> None:
    """
    Count a model request that starts.
    """
    state.requests += 1
    state.asking = True


def extend(state: SessionState, limits: dict[str, int], *, forgive: bool = True) -> None:
    """
    Set limits and let an exhausted session go on. To *forgive* is to forget the refused turns so far, to replace blown
    fuses, and to let what a person refused be asked for again.
    """
    state.limits.update(limits)
    state.exhausted = None
    if not forgive:
        return
    forget_refusals(state)
    state.answers.clear()
    state.meters = {key: value for key, value in state.meters.items() if value >= 0}


def forget_refusals(state: SessionState) -> None:
    """
    Let the refusals so far be no strikes.
    """
    state.denied_turns = state.refused_turns = state.turn_strikes = state.turn_refused = 0
    state.refusals.clear()


def reserve(state: SessionState, child: str, amounts: dict[str, int]) -> None:
    """
    Hold *amounts* for the session *child*.
    """
    state.reserved[child] = amounts


def release(state: SessionState, child: str, used: Mapping[str, int]) -> None:
    """
    Give back the amounts that the session *child* held, and charge those that it used.
    """
    if state.reserved.pop(child, None) is None:
        return
    state.calls += used.get("max_calls", 0)
    state.turns += used.get("max_turns", 0)
    state.cost += used.get("max_cost", 0)
    state.tokens += used.get("max_tokens", 0)
