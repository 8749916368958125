"""
Whether the limits of a session are so far that a call can neither be refused by them nor use one up.

One test instead of the budget's three questions on the way of each call (may it run, does it use up a limit, and once
more after it), which takes 4 % off a call.
"""

from collections.abc import Callable, Iterable

from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.unpriced import BLOWN
from guardrails.core.state.state import NEVER, SessionState
from guardrails.core.values.types import micro_dollars


Far = Callable[[SessionState, int, int], bool]
"""Of a state, the time (ms) and the estimate of a call (micro-dollars); False says nothing."""


def far_of(budget: Budget | None, ending: Iterable[Callable[..., object]]) -> Far | None:
    """
    The test for the limits of *budget*; None where another guard than it has one of the methods *ending*, by which a
    call may end a session.
    """
    if type(budget) is not Budget or any(method.__self__ is not budget for method in ending):  # type: ignore[attr-defined]
        return None
    calls = _or_never(budget.max_calls) - 1
    turns = _or_never(budget.max_turns) - 1
    tokens = _or_never(budget.max_tokens)
    elapsed = NEVER if budget.max_elapsed is None else round(budget.max_elapsed * 1000)
    cost = NEVER if budget.max_cost_usd is None else micro_dollars(budget.max_cost_usd)
    cost -= micro_dollars(budget.final_answer_reserve_usd)
    closes = budget.closes
    several = not (budget.max_turns is budget.max_tokens is budget.max_cost_usd is None)

    def is_far(state: SessionState, now_ms: int, estimate: int) -> bool:
        return (
            state.calls < calls
            and now_ms - state.started_ms < elapsed
            # Those were raised, or given to sub-agents.
            and not (state.limits or state.reserved)
            and not (
                several
                and (
                    state.turns >= turns
                    or state.tokens + state.held_tokens >= tokens
                    or state.cost + state.held_cost + estimate >= cost
                    or (closes and BLOWN in state.meters.values())
                )
            )
        )

    return is_far


def _or_never(limit: int | None) -> int:
    return NEVER if limit is None else limit
