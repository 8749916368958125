"""
Transitions of the state of a scope: the amounts that its sessions have used together.

It is a `SessionState` too, so that the same guards can look at it, with totals, limits and counters only. The cause
that ends its sessions is worked out anew each time and never kept: a limit that is raised in the policy is raised.
"""

from dataclasses import replace

from guardrails.core.values.types import Outcome

from .admissions import charge_held, expire, take_up
from .entries import Entry, Pending, pending_key
from .holds import lapse, prolong
from .parking import APPROVED_MS, approve, drop, resume, suspend
from .state import NEVER, SessionState
from .totals import charge, number, touch


def open_step(state: SessionState, now_ms: int) -> int:
    """
    Let time pass and give up what is overdue; the clamped time.
    """
    now = touch(state, now_ms)
    if state.pending:
        expire(state)
    if state.holds:
        lapse(state, now)
    return now


def hold(state: SessionState, holder: str, call: Pending) -> None:
    """
    Charge a call that the session *holder* was just admitted, and hold its estimate until it is settled.
    """
    state.calls += 1
    if not (call.cost or call.tokens or call.parked):
        return
    key = pending_key(holder, None, call.seq)
    earlier = state.pending.pop(key, None)
    if earlier is not None:
        # Of an earlier life of that session, which is over.
        charge_held(state, earlier, earlier.cost, earlier.tokens)
    state.held_cost += call.cost
    state.held_tokens += call.tokens
    state.pending[key] = Pending.opened(
        holder,
        Entry(call.seq, call.tool, None, state.now_ms),
        n=0,
        expires_ms=state.now_ms + call.expires_ms - call.at_ms,
        cost=call.cost,
        tokens=call.tokens,
        turn=0,
        claimed=call.claimed,
    )
    if call.parked is not None:
        # Of the question itself the session keeps all.
        state.pending[key].parked = replace(call.parked, message="", hint="", reason="", digest="", shown="")
        state.pending[key].expires_ms = min(state.pending[key].expires_ms, NEVER)
        state.parked += 1


def approve_held(state: SessionState, holder: str, seq: int) -> None:
    """
    Let what is held for a parked call be held as long as its approval holds.
    """
    held = state.pending.get(pending_key(holder, None, seq))
    if held is not None:
        approve(held, state.now_ms)


def let_go(state: SessionState, holder: str, seq: int) -> None:
    """
    Give back what is held for a parked call that never ran.
    """
    held = state.pending.get(pending_key(holder, None, seq))
    if held is not None:
        drop(state, held)


def suspend_held(state: SessionState, holder: str, seq: int) -> None:
    """
    Let what is held for a call that was suspended be held until it is made again.
    """
    held = state.pending.get(pending_key(holder, None, seq))
    if held is not None and held.parked is None:
        suspend(state, held, "")
    elif state.holds:
        prolong(state, f"{holder}#c{seq}", state.now_ms + APPROVED_MS)


def withdraw_held(state: SessionState, holder: str, call: Pending) -> None:
    """
    Give back what is held, or was charged when its time was over here, for a call that never ran.
    """
    held = state.pending.get(pending_key(holder, None, call.seq))
    if held is not None:
        drop(state, held)
        return
    state.calls -= 1
    state.cost -= call.cost
    state.tokens -= call.tokens


def claim(state: SessionState, holder: str, call: Pending, now_ms: int) -> int:
    """
    Let the time of a call that runs from *now_ms* on, as its session says, begin anew; the number of the event.
    """
    held = state.pending.get(pending_key(holder, None, call.seq))
    if held is None:
        return number(state)
    if held.parked is None:
        return take_up(state, held)
    held.parked, held.expires_ms = None, state.now_ms + call.expires_ms - now_ms
    state.parked -= 1
    return number(state)


def settle(state: SessionState, holder: str, seq: int, estimate: tuple[int, int], outcome: Outcome) -> None:
    """
    Replace the *estimate* (micro-dollars, tokens) of a call by what it really cost, unless it was given up meanwhile.
    """
    held = state.pending.pop(pending_key(holder, None, seq), None)
    if held is None and any(estimate):
        return
    cost, tokens = estimate
    cost = cost if outcome.cost is None else outcome.cost
    tokens = tokens if outcome.tokens is None else outcome.tokens
    if held is not None:
        if held.parked is not None:
            resume(state, held)
        charge_held(state, held, cost, tokens)
    else:
        charge(state, cost, tokens)
