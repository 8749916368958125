"""
The room for one more below the limits of a session: a call, a model request, a child.
"""

from typing import Final

from guardrails.core.guards.session_limits import Limits
from guardrails.core.state.holds import NOTHING, guessed
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import Denial

from .budget_words import counted, too_dear, usd


CHILDREN: Final = "budget.children"
"""Counter: the children of a family so far, if their number is limited."""
CHILDREN_LIMIT: Final = "budget.max_children"
"""Counter: the limit of them, once it was raised."""


def fits(
    limits: Limits, state: SessionState, estimate: tuple[int, int], guess: tuple[int, int], what: str = "call"
) -> Denial | None:
    """
    Returns the refusal of a *what* whose *estimate*, in micro-dollars and tokens, is more than is left.

    By a mere *guess* it is refused only beside the holds of other calls and requests: alone the guess may be wrong. A
    free call fits beside all holds, and a spent limit has ended the session.
    """
    guesses = guessed(state) if state.holds else NOTHING
    for place, (name, held) in enumerate((("max_cost", state.held_cost), ("max_tokens", state.held_tokens))):
        need = estimate[place] or (guess[place] if held or guesses[place] else 0)
        left = limits.left(state, name, state.now_ms) if need else None
        if left is None:
            continue
        if what != "call" or not estimate[place]:
            left -= guesses[place]
        if need > max(left, 0):
            shown = (
                (usd(need), usd(max(left, 0))) if name == "max_cost" else (counted(need, "token"), str(max(left, 0)))
            )
            return too_dear("max_cost_usd" if name == "max_cost" else name, *shown, what)
    return None


def crowded(limits: Limits, state: SessionState, depth: int) -> str | None:
    """
    Returns why there may not be another child, *depth* levels below its root. Returns None if there may.
    """
    deepest, most = limits.limit(state, "max_depth"), limits.limit(state, "max_children")
    if deepest is not None and depth > deepest:
        return f"sub-agents are at most {counted(deepest, 'level')} deep (`budget.max_depth`)"
    if most is not None and state.meter(CHILDREN) >= most:
        return f"there were {counted(state.meter(CHILDREN), 'sub-agent')} already (`budget.max_children` is {most})"
    return None
