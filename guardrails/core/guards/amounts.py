"""
Amounts as a caller names them, in the units of the state: money in micro-dollars, time in milliseconds.
"""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, TypedDict

from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import MICRO, micro_dollars

from .budget import COST, LIMITS, SEEDS, TABLE, TIME


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
    max_children: int | None
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
        if value is None:
            continue
        if name not in _NAMES:
            raise SessionError(f"`{key}` is no limit: use {', '.join(_NAMES[:-1])} or {_NAMES[-1]}")
        made[COST.name if name == COST.setting else name] = amount(key, name, value)
    return made


def amount(key: str, name: str, value: Any) -> int:
    """
    Returns *value*, which a caller gave as *key*, in units of the limit *name*; a missing amount is 0.

    Raises SessionError if it is no amount of that limit.
    """
    unit, made = LIMITS[name].unit if name in LIMITS else 1, -1
    if value is None:
        return 0
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool) and (unit == MICRO or value >= 0):
            made = micro_dollars(value) if unit == MICRO else round(value * unit)
    if made < 0:
        raise SessionError(f"`{key}` takes an amount{' in USD' * (unit == MICRO)} of at least 0, not `{value}`")
    if unit == 1 and not isinstance(value, int):
        raise SessionError(f"`{key}` takes a whole number, not `{value}`")
    return made


def settings_of(amounts: Mapping[str, int]) -> dict[str, Any]:
    """
    Returns the *amounts* that a child holds, as settings of its `Budget`.
    """
    made: dict[str, Any] = {"final_answer_reserve_usd": 0.0}
    for limit in TABLE:
        own = amounts.get(limit.name)
        # No time at all is no setting.
        made[limit.setting] = own if own is None or limit.unit == 1 else max(own, limit is TIME) / limit.unit
    return made
