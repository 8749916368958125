"""
Whether a limit of a chain is within reach of a session: far from all of them nobody needs to be asked.
"""

from dataclasses import dataclass
from typing import Final

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.exhaustion import least
from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.denials import Denials
from guardrails.core.guards.limits.growth import Growth
from guardrails.core.guards.limits.unpriced import BLOWN
from guardrails.core.state.state import NEVER, SessionState
from guardrails.core.values.types import micro_dollars

from .fuse import token_fuse


KNOWN: Final = (Budget, Growth, Denials)
"""Guards whose limits are known here; another that may end a session is always asked."""


@dataclass(frozen=True, slots=True)
class Reach:
    """
    The limits of a chain's `budget`, in the units of the state.
    """

    calls: int
    turns: int
    cost: int
    """What is held back for the final answer left out."""
    tokens: int
    elapsed_ms: int
    fuse: Growth | None
    """What alone counts the tokens of responses, where that is a fuse."""
    plain: bool
    """Only calls and time are limited."""

    def is_far(self, state: SessionState, now_ms: int, cost: int, tokens: int) -> bool:
        """
        Whether no limit is reached at *now_ms* even with one more call or turn, of *cost* and *tokens*.

        Of states whose limits nobody raised or shared, as they are in a transcript.
        """
        if self.plain:
            return (
                state.calls + 1 < self.calls
                and (now_ms - state.started_ms < self.elapsed_ms or state.started_ms < 0)
                and state.exhausted is None
                and BLOWN not in state.meters.values()
            )
        return (
            state.calls + 1 < self.calls
            and (now_ms - state.started_ms < self.elapsed_ms or state.started_ms < 0)
            and state.turns + 1 < self.turns
            and state.tokens + state.held_tokens + tokens < self.tokens
            and state.cost + state.held_cost + cost < self.cost
            and state.exhausted is None
            and BLOWN not in state.meters.values()
        )


def reach_of(chain: Chain) -> Reach | None:
    """
    The limits of *chain*; None where a guard that is not known here may end a session, or what tools cost.
    """
    if least(chain):
        return None
    asked = (*chain.spenders, *chain.turn_spenders, *chain.usages)
    if not all(type(method.__self__) in KNOWN for method in asked):  # type: ignore[attr-defined]
        return None
    budget = next((guard for guard in chain.guards if type(guard) is Budget and guard.mode != "off"), Budget())
    cost = None
    if budget.max_cost_usd is not None:
        cost = micro_dollars(budget.max_cost_usd) - micro_dollars(budget.final_answer_reserve_usd)
    limits = budget.max_turns, cost, budget.max_tokens
    return Reach(
        _or_never(budget.max_calls),
        _or_never(budget.max_turns),
        _or_never(cost),
        _or_never(budget.max_tokens),
        NEVER if budget.max_elapsed is None else round(budget.max_elapsed * 1000),
        token_fuse(chain),
        limits == (None, None, None),
    )


def _or_never(limit: int | None) -> int:
    return NEVER if limit is None else limit
