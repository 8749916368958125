"""
The calls of a session: admitted, run, settled or given up; and those that were refused.
"""

from typing import Final

from guardrails.core.retries.context import Settled
from guardrails.core.retries.spec import MAX_LOOKBACK
from guardrails.core.values.types import Denial, Outcome, ToolCall

from .entries import Entry, Pending, low, pending_key
from .family import end, outdate, tell
from .holds import free_guess
from .parking import drop, lapse, resume, unpark
from .state import SessionState
from .totals import exhaust, number
from .turns import leave_turn, note_last


REMEMBERED_REFUSALS: Final = 16
"""Refused signatures kept to tell a first refusal from a repeated one."""
ADMISSION_MS: Final = 600_000
"""How long an admission may stay unsettled where its tool declares no timeout."""
GRACE_MS: Final = 1_000
"""How much longer where the library itself runs the call: it settles it at the timeout, and that must come first."""


def admit(
    state: SessionState,
    call: ToolCall,
    *,
    cost: int = 0,
    tokens: int = 0,
    timeout_ms: int | None = None,
    changes: bool = True,
    claimed: bool = True,
    window: int,
    hints: tuple[tuple[str, str], ...] = (),
    before: Entry | None = None,
) -> Pending:
    """
    Charge a call and open its admission. The number of executed calls that are remembered is *window*. An attempt
    *before*, if given, is one that the library follows by this one. Both are one call of the model, in its turn and its
    streak.
    """
    tool, sig, now = call.tool, call.sig, state.now_ms
    state.n, state.seq = n, seq = state.n + 1, state.seq + 1
    state.calls += 1
    if before is None:
        state.turn_decided += 1
        state.turns += state.turn_admitted == 0
        state.turn_admitted += 1
        state.denied_turns = state.refused_turns = 0
        if tool == state.streak_tool:
            state.streak += 1
        else:
            state.streak_tool, state.streak, state.streak_failures = tool, 1, 0
    state.held_cost += cost
    state.held_tokens += tokens
    entry = Entry.begun(seq, tool, sig, now, changes, turn=state.mark, sketch=call.sketch or 0)
    if before is not None:
        entry.another, entry.turn, entry.sketch = True, before.turn, before.sketch
    state.window.append(entry)
    state.latest[sig] = seq
    if len(state.window) > window:
        oldest = state.window.pop(0)
        if state.latest.get(oldest.sig) == oldest.seq:
            del state.latest[oldest.sig]
    expires = now + (ADMISSION_MS if timeout_ms is None else timeout_ms)
    if claimed:
        expires += GRACE_MS
    if changes:
        tell(state)
    pending = Pending.opened(
        call.id,
        entry,
        n=n,
        expires_ms=expires,
        cost=cost,
        tokens=tokens,
        turn=state.turn,
        claimed=claimed,
        hints=hints,
    )
    state.pending[pending_key(call.id, None, seq) if sig is None else (call.id, sig)] = pending
    return pending


def note_limit(pending: Pending, limit: tuple[str, str]) -> None:
    """
    Keep the (code, message) of the limit that the call just admitted uses up.
    """
    pending.limit = limit


def take_up(state: SessionState, pending: Pending) -> int:
    """
    Let an admission be run: its time starts now, not when it was asked for; the number of the event.
    """
    pending.claimed = True
    pending.expires_ms += state.now_ms - pending.at_ms + GRACE_MS
    return number(state)


def use_approval(
    state: SessionState, pending: Pending, call: ToolCall, *, timeout_ms: int | None, changes: bool, claimed: bool
) -> int:
    """
    Let an approved or suspended call be the admission of *call*, as if it were asked for now; the number of the event.
    """
    unpark(state, pending, call, changes=changes)
    pending.claimed = claimed
    pending.expires_ms = state.now_ms + (ADMISSION_MS if timeout_ms is None else timeout_ms) + GRACE_MS * claimed
    if changes:
        tell(state)
    return number(state)


def lose(pending: Pending, now_ms: int) -> None:
    """
    Let an admission be overdue at *now_ms*: nobody will ever say how its call ended.
    """
    pending.expires_ms = now_ms


def expire(state: SessionState) -> list[Pending]:
    """
    Give up admissions that are overdue: their estimate stays charged, a late outcome changes nothing.
    """
    overdue = [pending for pending in state.pending.values() if pending.expires_ms <= state.now_ms]
    for pending in overdue:
        forgo(state, pending)
    return overdue


def forgo(state: SessionState, pending: Pending) -> None:
    """
    Give up one admission.
    """
    if pending.parked is not None and not resume(state, pending):
        lapse(state, pending)
        return
    del state.pending[pending_key(pending.id, pending.sig, pending.seq)]
    free_guess(state, pending)
    charge_held(state, pending, pending.cost, pending.tokens)
    pending.entry.status = "expired"
    end(state, pending.entry)
    if pending.entry.changes:
        tell(state)


def give_up(state: SessionState) -> tuple[tuple[int, Pending], ...]:
    """
    Do the same as events of the session. Returns (number, admission) of each.
    """
    return tuple((number(state), pending) for pending in expire(state))


def withdraw(state: SessionState, pending: Pending) -> None:
    """
    Take out an admission whose call never ran: what it held comes back, it is not counted, and it is no evidence.
    """
    drop(state, pending)
    leave_turn(state, pending)
    entry, sig = pending.entry, pending.sig
    pending.parked = None
    entry.changes = False
    entry.sketch = 0
    if sig is None or entry.seq < state.window[0].seq:
        return
    # What cannot be signed is never the same call as another.
    entry.sig = None
    state.latest[None] = max(entry.seq, state.latest.get(None, 0))
    if state.latest.get(sig) == entry.seq:
        del state.latest[sig]
        state.latest.update((one.sig, one.seq) for one in state.window if one.sig == sig)


def charge_held(state: SessionState, pending: Pending, cost: int, tokens: int) -> None:
    """
    Charge *cost* and *tokens* in place of what is held for an admission.
    """
    state.held_cost -= pending.cost
    state.held_tokens -= pending.tokens
    state.cost += cost
    state.tokens += tokens


def settle(
    state: SessionState, pending: Pending, outcome: Outcome, result_hash: int, steady: int = 0, empty: int = 0
) -> int:
    """
    Replace the estimate of an admission by its true cost, and note how it ended; *empty* as `Prepared` says. The
    number of the event.
    """
    sig = pending.sig
    del state.pending[pending_key(pending.id, None, pending.seq) if sig is None else (pending.id, sig)]
    charge_held(
        state,
        pending,
        pending.cost if outcome.cost is None else outcome.cost,
        pending.tokens if outcome.tokens is None else outcome.tokens,
    )
    entry, failed = pending.entry, outcome.error_type is not None
    entry.status, entry.error_type = "error" if failed else "ok", outcome.error_type
    entry.result_hash, entry.steady = result_hash, steady
    if empty:
        entry.empty, entry.unfinished, entry.little = empty == 2, empty == 3, empty == 1
    if entry.seq != state.seq:
        end(state, entry)
    if entry.worked:
        tell(state)
    # A call from before the streak says nothing of it, though it be of the same tool.
    if pending.seq > state.seq - state.streak:
        state.streak_failures = state.streak_failures + 1 if failed else 0
    # Past the constructor of a named tuple, which is Python code and takes three times as long.
    state.trail.append(tuple.__new__(Settled, (entry.tool, entry.sig, entry.error_type, state.now_ms)))
    if len(state.trail) > MAX_LOOKBACK:
        del state.trail[:-MAX_LOOKBACK]
    state.n += 1
    return state.n


def settle_late(state: SessionState, *, changes: bool) -> int:
    """
    Note the end of a call that is not admitted any more, and whether it may have changed something; the number of the event.
    """
    if changes:
        outdate(state)
    return number(state)


def note_retry(entry: Entry, tries: int, at_ms: int, *, explored: bool | None = None) -> None:
    """
    Keep how many more identical calls are a retry of a failure, and from when on; *explored*: advised only to learn.
    """
    entry.retries_left, entry.retry_at_ms = tries, at_ms
    if explored is not None:
        entry.explored = explored


def deny(state: SessionState, call: ToolCall, denial: Denial) -> int:
    """
    Note a refused call: nothing is charged, the window does not age; the number of its event.
    """
    if call.attempt <= 1:
        state.turn_decided += 1
        if denial.strike:
            _remember_refusal(state, call.sig)
    else:
        note_last(state, call.sig)
    if denial.ends_session and denial.scope is None:
        exhaust(state, denial)
    return number(state)


def _remember_refusal(state: SessionState, sig: int | None) -> None:
    if state.refused_now(sig):
        # Calls of one turn do not know of each other's refusals.
        return
    key, known = low(sig), state.refusals
    if state.refused_before(sig):
        state.turn_strikes += 1
        known.remove(key)
    known.append(key)
    del known[:-REMEMBERED_REFUSALS]
    state.turn_refused = min(state.turn_refused + 1, REMEMBERED_REFUSALS)
