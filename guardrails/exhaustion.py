"""
What ends a session, and what is left of it.
"""

from collections.abc import Callable

from .chain import Chain
from .guards.base import Guard
from .guards.budget import FINISH
from .state import SessionState, exhaust
from .types import Denial


def spent(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    """
    The cause that ends the session now, in the policy's words.
    """
    return _first(chain, chain.spenders, state, now_ms)


def spent_by_call(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    """
    The same after a call was settled: what no call can bring about is asked only once the session is over anyway.
    """
    return _first(chain, chain.call_spenders if state.exhausted is None else chain.spenders, state, now_ms)


def turn_cause(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    """
    The cause that ends the session once the present turn is over.
    """
    return _first(chain, chain.turn_spenders, state, now_ms)


def used_up(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    The limit that the call just admitted uses up.
    """
    cause = _first(chain, chain.call_spenders, state, now_ms)
    if cause is not None:
        exhaust(state, cause)
        return cause.code, cause.message
    if state.turn_decided < state.turn_expects:
        return None
    cause = _first(chain, chain.call_turn_spenders, state, now_ms)
    return None if cause is None else (cause.code, cause.message)


def _first(
    chain: Chain, looks: tuple[Callable[[SessionState, int], Denial | None], ...], state: SessionState, now_ms: int
) -> Denial | None:
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
    What follows from a guard whose *method* raised where no single call is judged; None: the session goes on.
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


def exhaustion(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    (code, message) of what has ended the session, as a model request that starts now would find it.
    """
    if state.exhausted is not None:
        return state.exhausted
    cause = spent(chain, state, max(now_ms, state.now_ms)) or turn_cause(chain, state, now_ms)
    return None if cause is None else (cause.code, cause.message)


def progress(chain: Chain, state: SessionState, now_ms: int) -> dict[str, object]:
    """
    What is used and what is left of the session's limits; money in USD, time in seconds.
    """
    shown: dict[str, object] = {"calls_used": state.calls}
    budget = chain.budget
    if budget is None:
        return shown
    if budget.max_calls is not None and (calls := budget.calls_left(state)) is not None:
        shown["calls_left"] = max(0, calls)
    if budget.max_turns is not None and (turns := budget.turns_left(state)) is not None:
        shown["turns_left"] = max(0, turns)
    if budget.max_tokens is not None and (tokens := budget.tokens_left(state)) is not None:
        shown["tokens_left"] = max(0, tokens)
    if budget.max_cost_usd is not None and (cost := budget.cost_left(state)) is not None:
        shown["cost_left_usd"] = max(0, cost) / 1_000_000
    if budget.max_elapsed is not None and (elapsed := budget.elapsed_left_ms(state, now_ms)) is not None:
        shown["seconds_left"] = max(0, elapsed) // 1000
    return shown
