"""
The effects of a failed call: whether it may be repeated, how often and when.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.plan import Plan
from guardrails.core.engine.scopes import Scope
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.results.retry_budget import RetryBudget, without_retry
from guardrails.core.retries.context import due_of
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.state.admissions import note_retry
from guardrails.core.state.state import Pending, SessionState
from guardrails.core.state.totals import set_meters
from guardrails.core.values.types import Denial, Outcome, ToolCall


DUE: Final = "due."
"""Counter of a tool: until when, in milliseconds since 1970, one of its answers has asked to be left alone."""
UNJUDGED_RETRIES: Final = 3
"""Retries of a failure that may pass, where no guard judges it."""
UNJUDGED_WAIT_MS: Final = 60_000
"""From the last of them on until another."""
UNKNOWN_MS: Final = -1
"""For a wait that is still to be found."""
JITTER: Final = 0.2
"""
Of a wait, at most so much longer by chance, or all that failed together would come back together: the share by which gRPC
varies its backoff (A6), here upwards only, as no server is asked before the time that it named.
"""
TURN_MS: Final = 5_000
"""
The least wait before the second retry, if no server names one; doubles with each further one. It is the median
time from a result to the next call over 22,115 recorded ones, so that retries without a model are no more hurried than its own.
"""
MOST_ATTEMPTS: Final = 16
"""Attempts at one call, under any policy: then the model is to hear of it."""
DUE_TOOLS: Final = 16
"""Tools of a session that may have one; counters are for guards."""


class Budgeted(NamedTuple):
    """
    One retry budget of a tool, the session's or a scope's, for one step.
    """

    guard: RetryBudget
    enforced: bool
    state: SessionState
    now_ms: int
    scope: Scope | None


def budgets_of(plan: Plan, state: SessionState, scopes: Sequence[Scope], tool: str) -> list[Budgeted]:
    """
    Returns the retry budgets of *tool*, those of *scopes* first.
    """
    made = [
        Budgeted(guard, enforced, scope.state, scope.now_ms, scope)
        for scope in scopes
        for enforced, guard in scope.chain.plan(tool).retry_budgets
    ]
    return [*made, *(Budgeted(guard, enforced, state, state.now_ms, None) for enforced, guard in plan.retry_budgets)]


def lacking(chain: Chain, budgets: Sequence[Budgeted], tool: str) -> Denial | None:
    """
    Returns why a failed call of *tool* is not to be repeated: one of *budgets* is empty. Returns None if all have a
    token.
    """
    for guard, enforced, state, now_ms, scope in budgets:
        said = guard.empty(tool, state, now_ms) if enforced else None
        if said is not None:
            return chain.worded(said) if scope is None else scope.says(said)
    return None


def afford(envelope: Envelope, outcome: Outcome, said: Denial | None, budgets: Sequence[Budgeted], tool: str) -> None:
    """
    Let a failed call of *tool* that is told to be repeated take a token of each of *budgets*. If a bucket is empty, as
    *said* tells, no transient failure is told to be repeated, by the model or by the library.
    """
    claimed = envelope.retryable
    if said is not None and (claimed or (claimed is None and outcome.error_type in TRANSIENT)):
        without_retry(envelope, said)
    elif claimed:
        for guard, _, state, now_ms, _ in budgets:
            set_meters(state, guard.taken(tool, state, now_ms))


def again_ms(
    plan: Plan, envelope: Envelope, call: ToolCall, took_ms: int, left_ms: int | None, *, named: bool
) -> int | None:
    """
    Returns after how many milliseconds the library makes *call* again by itself. The call took *took_ms* and failed as
    *envelope* tells; *named* says whether the server named a wait. The session has *left_ms*. Returns None if the retry
    is for the model: it does not pay, or not so soon.
    """
    most = plan.auto_ms
    if most is None or envelope.status != "error" or not envelope.retryable or call.sig is None:
        return None
    if envelope.error_type == "cancelled" or call.attempt >= MOST_ATTEMPTS:
        return None
    if envelope.judged is not None and envelope.judged.explored:
        # It is not expected to pay.
        return None
    wait_ms = envelope.retry_after_ms or 0
    if call.attempt > 1 and not named:
        # A model would have thought meanwhile, and what lasts a little passes in that time.
        wait_ms = max(wait_ms, TURN_MS << (call.attempt - 2))
    late = left_ms is not None and wait_ms * (1 + JITTER) + took_ms >= left_ms
    return None if late or wait_ms > most else wait_ms


def note_due(state: SessionState, tool: str, retry_after_ms: int) -> None:
    """
    Keep until when an answer of *tool* has asked to be left alone.
    """
    key = DUE + tool
    due = due_of(state.meters.get(key), state.now_ms, retry_after_ms)
    if due is not None and (key in state.meters or sum(one.startswith(DUE) for one in state.meters) < DUE_TOOLS):
        set_meters(state, {key: due})


def note_tries(pending: Pending, envelope: Envelope, state: SessionState, *, unafforded: bool) -> None:
    """
    Keep how often the call of *pending*, which failed, may be repeated as *envelope* says.
    """
    entry = pending.entry
    if envelope.retryable:
        explored = envelope.judged is not None and envelope.judged.explored
        at_ms = state.now_ms + (envelope.retry_after_ms or 0)
        note_retry(entry, envelope.max_retries_remaining or 0, at_ms, explored=explored)
    elif (envelope.retryable is None or unafforded) and entry.error_type in TRANSIENT:
        # Nobody judges it, or all that lacks is a budget: a few more tries are no repeats, and later on it is another matter.
        earlier = state.earlier(entry.sig, len(state.window))
        run = next((at for at, each in enumerate(earlier) if each.status != "error"), len(earlier))
        tries = max(0, UNJUDGED_RETRIES + 1 - run)
        note_retry(entry, tries, 0 if tries else state.now_ms + UNJUDGED_WAIT_MS)
