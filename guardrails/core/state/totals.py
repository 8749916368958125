"""
The transitions that every event may make: time, numbers, counters, money, limits, and whether the session goes on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from guardrails.core.values.session_time import read
from guardrails.core.values.types import Denial

from .entries import LAPSED
from .family import part
from .state import METERS, OVERFLOW, SessionState


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


def mend(states: Sequence[SessionState], *, child: bool = False) -> None:
    """
    Let *states* be whole after a step that broke off in the middle of them; that of a *child* has its root's last.

    A hold without an owner is charged: the sum is then more than the true use, never less. A call whose admission is
    gone has an unknown end. Each state draws a number that no record has, so that a replay finds the gap.
    """
    own = states[:-1] if child else states
    for state in own:
        state.n += 1
        holds = [held for held in state.holds.values() if held.said and held.ends_ms != LAPSED]
        open_ = list(state.pending.values())
        cost = sum(one.cost for one in open_) + sum(one.cost for one in holds)
        tokens = sum(one.tokens for one in open_) + sum(one.tokens for one in holds)
        over_cost, over_tokens = max(0, state.held_cost - cost), max(0, state.held_tokens - tokens)
        state.cost, state.held_cost = state.cost + over_cost, cost
        state.tokens, state.held_tokens = state.tokens + over_tokens, tokens
        state.parked = sum(one.parked is not None for one in open_)
        known = {one.seq for one in open_}
        for entry in state.window:
            if entry.status == "running" and entry.seq not in known:
                entry.status = "expired"
        state.latest = {entry.sig: entry.seq for entry in state.window}
    if child:
        if own[0].family is not None:
            part(own[0], states[-1], "", event=False)
        states[-1].shared += 1


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
