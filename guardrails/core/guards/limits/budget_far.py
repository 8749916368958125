"""
A test for limits so far away that a call can neither be refused by them nor use one up.

It stands in for three questions of the budget for each call: may it run, does it use up a limit, may the next. That
takes 4 % off a call.
"""

from guardrails.core.guards.session_limits import Far
from guardrails.core.state.state import NEVER, SessionState

from .unpriced import BLOWN


def far_test(
    max_calls: int | None,
    max_turns: int | None,
    max_tokens: int | None,
    *,
    elapsed_ms: int | None,
    cost: int | None,
    closes: bool,
) -> Far:
    """
    Returns the test for limits; None says that there is no such limit. The *cost* is in micro-dollars, without the part
    that is held back for the final answer. If *closes*, a model response of unknown price ends the session.
    """
    calls, turns, tokens = _or_never(max_calls) - 1, _or_never(max_turns) - 1, _or_never(max_tokens)
    elapsed, money = _or_never(elapsed_ms), _or_never(cost)
    several = not (max_turns is max_tokens is cost is None)

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
                    or state.cost + state.held_cost + estimate >= money
                    or (closes and BLOWN in state.meters.values())
                )
            )
        )

    return is_far


def _or_never(limit: int | None) -> int:
    return NEVER if limit is None else limit
