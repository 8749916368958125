"""
The causes that end a session, and what is left of its limits.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from guardrails.core.guards.base import Facts, Guard, overrides
from guardrails.core.guards.limits.budget_words import FINISH
from guardrails.core.state.state import NEVER, Pending, SessionState
from guardrails.core.state.totals import exhaust, go_on, keep_cause, set_meters
from guardrails.core.state.turns import imply_turn
from guardrails.core.values.types import Denial

from .chain import Chain


TURN: Final = "budget.turn"
"""Counter: micro-dollars of the cheapest model response of the family."""


def spent(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    """
    Returns the cause that ends the session now, in the policy's words.
    """
    return first_cause(chain, chain.spenders, state, now_ms) or _outgrown(chain, state)


def least(chain: Chain) -> int:
    """
    Returns micro-dollars of the cheapest tool; 0 if one is free, nobody lists the tools, or money is not limited.
    """
    if chain.least is not None:
        return chain.least
    if chain.budget is None or not chain.budget.priced:
        return 0
    found = NEVER
    for name in chain.tools if chain.known is None else chain.tools.keys() & chain.known:
        found = min(found, chain.plan(name).cost)
        if found == 0:
            break
    return 0 if found == NEVER else found


def note_turn(chain: Chain, state: SessionState, cost: int | None) -> None:
    """
    Keep what the cheapest model response has cost, if no tool is free.
    """
    if cost is not None and least(chain):
        set_meters(state, {TURN: min(cost, state.meters.get(TURN, cost))})


def _outgrown(chain: Chain, state: SessionState) -> Denial | None:
    """
    Returns the cause that neither a tool nor a model turn fits into what is left of the cost limit.

    A turn is taken for as cheap as the cheapest so far, and fits if none has a price.
    """
    turn = state.meters.get(TURN)
    said = None if turn is None or chain.budget is None else chain.budget.outgrown(state, turn, least(chain))
    return None if said is None else chain.worded(said)


def turn_cause(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    """
    Returns the cause that ends the session once the present turn is over.
    """
    return first_cause(chain, chain.turn_spenders, state, now_ms)


def tell_turn(chain: Chain, state: SessionState, sig: int | None) -> None:
    """
    If the host tells no turns, note whether a call of *sig* begins one, and end a session whose refusals are enough.
    """
    if imply_turn(state, sig) and state.refused_turns:
        cause = first_cause(chain, chain.refusal_spenders, state, state.now_ms)
        if cause is not None:
            exhaust(state, cause)


def used_up(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    Returns the limit that the call just admitted uses up.
    """
    cause = first_cause(chain, chain.call_spenders, state, now_ms)
    if cause is not None:
        exhaust(state, cause)
        return cause.code, cause.message
    if not chain.call_turn_spenders or state.turn_decided < state.turn_expects:
        return None
    cause = first_cause(chain, chain.call_turn_spenders, state, now_ms)
    return None if cause is None else (cause.code, cause.message)


def first_cause(
    chain: Chain, looks: tuple[Callable[[SessionState, int], Denial | None], ...], state: SessionState, now_ms: int
) -> Denial | None:
    """
    Returns the first cause that one of *looks* finds, in the policy's words.
    """
    for look in looks:
        try:
            cause = look(state, now_ms)
        except Exception:  # noqa: BLE001
            cause = failed(chain, look)
        if cause is not None:
            return chain.worded(cause)
    return None


def failed(chain: Chain, method: Callable[..., object]) -> Denial | None:
    """
    Returns the denial that follows from a guard whose *method* raised outside a single call. Returns None if the
    session goes on.
    """
    guard: Guard = method.__self__  # type: ignore[attr-defined]
    if chain.on_error == "allow" or guard.mode != "enforce" or chain.mode != "enforce":
        return None
    return Denial(
        code=f"{guard.name}.error",
        status="limit_reached",
        message=f"The guard `{guard.name}` failed. Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
    )


def undo(chain: Chain, state: SessionState, pending: Pending) -> None:
    """
    Let guards give back what they counted for a call that never ran; one that fails gives nothing back.
    """
    plan = chain.plan(pending.tool)
    facts = Facts(state.now_ms, plan.tool, pending.cost, pending.tokens, pending.turn, chain.known)
    for guard in plan.guards:
        if overrides(guard, "undo"):
            with suppress(Exception):  # nobody could ever answer the call, nor go on without
                set_meters(state, guard.undo(pending.tool, state, facts))


def reopen(chain: Chain, state: SessionState) -> None:
    """
    Let the session go on if it was ended by a limit that is not used up any more.
    """
    if state.exhausted is None or state.closed or not state.exhausted[0].startswith("budget."):
        return
    go_on(state)
    cause = exhaustion(chain, state, state.now_ms)
    if cause is not None:
        keep_cause(state, cause)


def ended_by_refusals(chain: Chain, state: SessionState) -> bool:
    """
    Returns whether a guard has ended the session because its model did nothing but repeat refused calls.
    """
    names = {look.__self__.name for look in chain.refusal_spenders}  # type: ignore[attr-defined]
    return state.exhausted is not None and state.exhausted[0].partition(".")[0] in names


def exhaustion(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    Returns (code, message) of the cause that has ended the session, as a model request at its time *now_ms* would find
    it.
    """
    if state.exhausted is not None:
        return state.exhausted
    cause = spent(chain, state, max(now_ms, state.now_ms)) or turn_cause(chain, state, now_ms)
    return None if cause is None else (cause.code, cause.message)


def progress(chain: Chain, state: SessionState, now_ms: int, *, near: bool = False) -> dict[str, object]:
    """
    Returns the used and the remaining amounts of the session's limits, or of those that are *near*; money in USD, time in seconds.
    """
    return {"calls_used": state.calls} if chain.budget is None else chain.budget.progress(state, now_ms, near=near)
