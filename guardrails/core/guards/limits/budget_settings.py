"""
The names of the limits of `Budget`, and those of its settings that have keys of their own.
"""

from typing import Annotated, Final, TypedDict

from guardrails.core.guards.settings import Keys
from guardrails.core.values.bounds import Ge


LIMITS: Final = ("max_calls", "max_turns", "max_cost_usd", "max_tokens", "max_elapsed")
SEEDS: Final = {
    "max_tool_calls": "max_calls",
    "max_tool_turns": "max_turns",
    "max_tool_iterations": "max_turns",
    "max_total_cost_usd": "max_cost_usd",
}
"""Other names of limits."""


class MoreCalls(TypedDict, total=False):
    """
    Calls and turns, as many more.
    """

    max_calls: Annotated[int, Ge(1)] | None
    max_turns: Annotated[int, Ge(1)] | None


GoOn = Annotated[MoreCalls, Keys()]
