"""
Amounts as a caller names them, in the units of the state: money in micro-dollars, time in milliseconds.
"""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, TypedDict

from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import MICRO

from .budget import CALLS, COST, LIMITS, SEEDS, TABLE, TIME


class Amounts(TypedDict, total=False):
    """
    Amounts of the limits of `Budget`, by each of their names, as `extend` and `child` take them. None says that a limit
    is not named.
    """

    max_calls: int | None
    max_turns: int | None
    max_cost_usd: float | str | Decimal | None
    max_tokens: int | None
    max_elapsed: float | None
    """Seconds."""
    max_tool_iterations: int | None
    max_tool_calls: int | None
    max_tool_turns: int | None
    max_total_cost_usd: float | str | Decimal | None


ITERATIONS: Final = "max_tool_iterations"
"""The limit that each loop has for itself: a state holds what all may do more."""
_NAMES: Final = tuple(name for name in Amounts.__annotations__ if name == ITERATIONS or name not in SEEDS)


def internal(amounts: Mapping[str, object]) -> dict[str, int]:
    """
    Returns amounts as a caller names them (USD, seconds, the seeds' names) in the units of the state.

    Raises SessionError for a name that is no limit or an amount that is no number.
    """
    made: dict[str, int] = {}
    for key, value in amounts.items():
        name = key if key == ITERATIONS else SEEDS.get(key, key)
        if name not in _NAMES:
            raise SessionError(f"`{key}` is no limit: use {', '.join(_NAMES[:-1])} or {_NAMES[-1]}")
        if value is not None:
            made[COST.name if name == COST.setting else name] = amount(key, name, value)
    return made


def amount(key: str, name: str, value: Any) -> int:
    """
    Returns *value*, which a caller gave as *key*, in units of the limit *name*; a missing amount is 0.

    Raises SessionError if it is no amount of that limit.
    """
    limit, made = LIMITS.get(name, CALLS), -1
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool) and (limit.unit > 1 or isinstance(value, int)):
            made = limit.amount(value)
    if made < 0 and value is not None:
        unit = {1: "a whole number", MICRO: "an amount in USD"}.get(limit.unit, "an amount of seconds")
        raise SessionError(f"`{key}` takes {unit} of at least 0, not `{value}`")
    return max(0, made)


def settings_of(amounts: Mapping[str, int]) -> dict[str, Any]:
    """
    Returns the *amounts* that a child holds, as settings of its `Budget`.
    """
    made: dict[str, Any] = {"final_answer_reserve_usd": 0.0, "per": None, "at_limit": None}
    for limit in TABLE:
        own = amounts.get(limit.name)
        # No time at all is no setting.
        made[limit.setting] = own if own is None or limit.unit == 1 else max(own, limit is TIME) / limit.unit
    return made
