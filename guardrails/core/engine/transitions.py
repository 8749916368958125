"""
What happens in a session beside calls: turns, charges, model requests, extensions, children.

Pure, like `decide` and `complete`; each returns the number of its event.
"""

from collections.abc import Callable, Mapping
from typing import Final

from guardrails.core.guards.limits.budget import Budget, usd
from guardrails.core.state.state import (
    SessionState,
    begin_turn,
    charge,
    end_turn,
    exhaust,
    extend,
    number,
    release,
    reserve,
    set_meter,
    time_of,
    touch,
)
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Denial

from .chain import Chain
from .exhaustion import exhaustion, failed, note_turn, spent


LIMITS: Final = ("max_calls", "max_turns", "max_cost", "max_tokens", "max_elapsed")
"""Limits as the state names them: money in micro-dollars, time in milliseconds."""


def open_turn(chain: Chain, state: SessionState, now_ms: int, calls: int) -> int:
    """
    Close the present turn and open the next, of *calls* calls (0: unknown).
    """
    now = touch(state, now_ms)
    cause = exhaustion(chain, state, now)
    if cause is not None and state.exhausted is None:
        state.exhausted = cause
    end_turn(state)
    begin_turn(state, calls)
    return number(state)


def charge_response(
    chain: Chain,
    state: SessionState,
    now_ms: int,
    cost: int | None,
    tokens: int,
    model: str | None = None,
    *,
    untold: bool = False,
) -> int:
    """
    Charge a response of *model*; a *cost* of None: nobody knows its price, or (*model* is None) nobody asked for it.
    *untold*: it came whole, and did not say what it used.
    """
    now = touch(state, now_ms)
    charge(state, cost, tokens)
    note_turn(chain, state, cost)
    if not _ended(chain, state, now):
        for usage in chain.usages:
            _count(chain, state, usage, tokens, now)
        for response in chain.responses:
            _count(chain, state, response, cost, tokens, model, untold)
        _ended(chain, state, now)
    return number(state)


def start_request(chain: Chain, state: SessionState, now_ms: int) -> int:
    """
    Note that a model request starts.
    """
    now = touch(state, now_ms)
    state.requests += 1
    # A fuse that another session of the family has blown stays blown.
    if not _ended(chain, state, now):
        for request in chain.requests:
            _count(chain, state, request, now)
        _ended(chain, state, now)
    return number(state)


def _count(chain: Chain, state: SessionState, method: Callable[..., Mapping[str, int]], *facts: object) -> None:
    try:
        for key, value in method(state, *facts).items():
            set_meter(state, key, value)
    except Exception:  # noqa: BLE001
        cause = failed(chain, method)
        if cause is not None:
            exhaust(state, chain.worded(cause))


def _ended(chain: Chain, state: SessionState, now: int) -> bool:
    cause = spent(chain, state, now)
    if cause is not None:
        exhaust(state, cause)
    return cause is not None


def raise_limits(chain: Chain, state: SessionState, now_ms: int, amounts: dict[str, int]) -> tuple[int, dict[str, int]]:
    """
    Let a session use *amounts* more than its limits, or than it has used where that is more.

    Returns the number of the event and the new limits. Raises SessionError for a limit that the policy does not set.
    """
    if state.closed:
        raise SessionError("the session is closed: what it did not use was given back")
    # A budget that only observes has limits too: a host that raises them must not break in observe mode.
    budget = next((guard for guard in chain.guards if isinstance(guard, Budget)), None) or Budget()
    used = {
        "max_calls": state.calls,
        "max_turns": state.turns,
        "max_cost": state.cost,
        "max_tokens": state.tokens,
        "max_elapsed": time_of(state, now_ms) - state.started_ms if state.started_ms >= 0 else 0,
    }
    limits = {}
    for name, amount in amounts.items():
        limit = _limit(budget, state, name)
        if limit is None:
            raise SessionError(f"the policy sets no limit `{_said(name)}` that could be raised")
        limits[name] = max(limit, used[name]) + amount
    # Time is noted last: what is refused is no event, and leaves no trace that a replay would miss.
    now = touch(state, now_ms)
    extend(state, limits)
    _ended(chain, state, now)
    return number(state), limits


def reserve_for_child(
    chain: Chain, state: SessionState, now_ms: int, child: str, amounts: dict[str, int]
) -> tuple[int, dict[str, int]]:
    """
    Hold *amounts* for *child*; a limit of the parent that is not named gives all that is left of it.

    Returns the number of the event and what the child holds. Raises SessionError where that is more than is left.
    """
    now = time_of(state, now_ms)
    if child in state.reserved:
        touch(state, now_ms)
        return number(state), state.reserved[child]
    cause = exhaustion(chain, state, now)
    if cause is not None:
        raise SessionError(f"the session is exhausted ({cause[0]}), so nothing is left for `{child}`")
    left = _left(chain, state, now)
    held: dict[str, int] = {}
    for name in LIMITS:
        own, available = amounts.get(name), left[name]
        if own is not None and available is not None and own > available:
            raise SessionError(f"`{child}` asks for {_asked(name, own)}, {_shown(name, available)} is left")
        amount = available if own is None else own
        if amount is not None:
            held[name] = max(0, amount)
    touch(state, now_ms)
    reserve(state, child, held)
    return number(state), held


def reserve_more(chain: Chain, state: SessionState, now_ms: int, child: str, amounts: dict[str, int]) -> int:
    """
    Hold *amounts* more for *child*, which raises its limits by them; the number of the event.

    Raises SessionError where that is more than is left, or the child does not run any more.
    """
    held = state.reserved.get(child)
    if held is None:
        raise SessionError(f"`{child}` is closed: what it did not use was given back")
    left = _left(chain, state, time_of(state, now_ms))
    for name, amount in amounts.items():
        available = left[name]
        if available is not None and amount > available:
            raise SessionError(f"`{child}` asks for {_asked(name, amount)} more, {_shown(name, available)} is left")
    touch(state, now_ms)
    reserve(state, child, {name: amount + amounts.get(name, 0) for name, amount in held.items()})
    return number(state)


def _left(chain: Chain, state: SessionState, now: int) -> dict[str, int | None]:
    budget = chain.budget or Budget()
    return {
        "max_calls": budget.calls_left(state),
        "max_turns": budget.turns_left(state),
        "max_cost": budget.cost_left(state),
        "max_tokens": budget.tokens_left(state),
        "max_elapsed": budget.elapsed_left_ms(state, now),
    }


def _asked(name: str, amount: int) -> str:
    return f"{_said(name)} {_shown(name, amount)}"


def _shown(name: str, amount: int) -> str:
    return usd(amount) if name == "max_cost" else str(amount)


def release_child(state: SessionState, now_ms: int, child: str, used: dict[str, int]) -> int:
    """
    Give back what *child* held and charge what it used.
    """
    touch(state, now_ms)
    release(state, child, used)
    return number(state)


def open_child(state: SessionState, now_ms: int) -> int:
    """
    Start the clock of a child session whose share was just reserved.
    """
    touch(state, now_ms)
    return number(state)


def note(state: SessionState, now_ms: int) -> int:
    """
    Number an event that changes nothing in the session itself.
    """
    touch(state, now_ms)
    return number(state)


def close(state: SessionState, now_ms: int) -> tuple[int, dict[str, int]]:
    """
    End a child session for good; the number of the event, and what it has used.
    """
    touch(state, now_ms)
    over = Denial(
        code="session.closed",
        status="limit_reached",
        message="This session is closed.",
        hint="Report what you have.",
        ends_session=True,
    )
    exhaust(state, over)
    state.closed = True
    return number(state), used_by(state)


def used_by(state: SessionState) -> dict[str, int]:
    """
    What a session has used, by limit; what is open counts: estimates that may never settle, children that still run.
    """
    used = {
        "max_calls": state.calls,
        "max_turns": state.turns,
        "max_cost": state.cost + state.held_cost,
        "max_tokens": state.tokens + state.held_tokens,
    }
    return {name: amount + state.reserved_by_children(name) for name, amount in used.items()}


def _limit(budget: Budget, state: SessionState, name: str) -> int | None:
    if name == "max_cost":
        return budget.cost_limit(state)
    if name == "max_elapsed":
        return state.limit(name, None if budget.max_elapsed is None else round(budget.max_elapsed * 1000))
    return state.limit(name, getattr(budget, name))


def _said(name: str) -> str:
    return "max_cost_usd" if name == "max_cost" else name
