"""
What changes the state of a scope: what its sessions have used together.

It is a `SessionState` too, so that the same guards can look at it, with totals, limits and counters only. What ends its
sessions is worked out anew each time and never kept: a limit that is raised in the policy is raised.
"""

from guardrails.core.values.types import Outcome, pending_key

from .state import Entry, Pending, SessionState, expire, number, take_up, touch


def open_step(state: SessionState, now_ms: int) -> int:
    """
    Let time pass and give up what is overdue; the clamped time.
    """
    now = touch(state, now_ms)
    if state.pending:
        expire(state)
    return now


def hold(state: SessionState, holder: str, call: Pending) -> None:
    """
    Charge a call that the session *holder* was just admitted, and hold its estimate until it is settled.
    """
    state.calls += 1
    if not (call.cost or call.tokens):
        return
    key = pending_key(holder, None, call.seq)
    earlier = state.pending.pop(key, None)
    if earlier is not None:
        # Of an earlier life of that session, which is over.
        _charge_estimate(state, earlier)
    state.held_cost += call.cost
    state.held_tokens += call.tokens
    expires = state.now_ms + call.expires_ms - call.at_ms
    entry = Entry(call.seq, call.tool, None, state.now_ms)
    state.pending[key] = Pending(
        call.seq, 0, holder, call.tool, None, state.now_ms, expires, call.cost, call.tokens, 0, call.claimed, entry
    )


def claim(state: SessionState, holder: str, seq: int) -> int:
    """
    Let the time of a call that now runs begin anew; the number of the event.
    """
    held = state.pending.get(pending_key(holder, None, seq))
    return number(state) if held is None else take_up(state, held)


def settle(state: SessionState, holder: str, seq: int, estimate: tuple[int, int], outcome: Outcome) -> None:
    """
    Replace the *estimate* (micro-dollars, tokens) of a call by what it really cost, unless it was given up meanwhile.
    """
    held = state.pending.pop(pending_key(holder, None, seq), None)
    if held is not None:
        state.held_cost -= held.cost
        state.held_tokens -= held.tokens
    elif any(estimate):
        return
    cost, tokens = estimate
    state.cost += cost if outcome.cost is None else outcome.cost
    state.tokens += tokens if outcome.tokens is None else outcome.tokens


def _charge_estimate(state: SessionState, held: Pending) -> None:
    state.held_cost -= held.cost
    state.held_tokens -= held.tokens
    state.cost += held.cost
    state.tokens += held.tokens
