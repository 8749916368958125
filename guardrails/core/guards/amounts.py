"""
Amounts as a caller names them, in the units of the state: money in micro-dollars, time in milliseconds.
"""

import math

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypedDict

from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import micro_dollars

from .budget import Budget


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


_LOOP: Final = "max_tool_iterations"
"""The limit that each loop has for itself."""
_NAMES: Final = tuple(name for name in Amounts.__annotations__ if name == _LOOP or name not in Budget.aliases)


def internal(amounts: Mapping[str, object]) -> dict[str, int]:
    """
    Returns amounts as a caller names them (USD, seconds, the seeds' names) in the units of the state.

    Raises SessionError for a name that is no limit or an amount that is no number.
    """
    made: dict[str, int] = {}
    for key, value in amounts.items():
        if value is None:
            continue
        name = key if key == _LOOP else Budget.aliases.get(key, key)
        if name not in _NAMES:
            raise SessionError(f"`{key}` is no limit: use {', '.join(_NAMES[:-1])} or {_NAMES[-1]}")
        made["max_cost" if name == "max_cost_usd" else name] = amount(key, name, value)
    return made


def amount(key: str, name: str, value: Any) -> int:
    """
    Returns *value*, which a caller gave as *key*, in units of the limit *name*; a missing amount is 0.

    Raises SessionError if it is no amount of that limit.
    """
    if value is None:
        return 0
    if name == "max_cost_usd":
        return money(key, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise SessionError(f"`{key}` takes an amount of at least 0, not `{value}`")
    if name == "max_elapsed":
        return round(value * 1000)
    if not isinstance(value, int):
        raise SessionError(f"`{key}` takes a whole number, not `{value}`")
    return value


def money(key: str, usd: Any) -> int:
    """
    Returns *usd*, a number, text or Decimal, as micro-dollars.

    Raises SessionError if it is no amount of at least 0.
    """
    try:
        micro = -1 if isinstance(usd, bool) else micro_dollars(usd)
    except (TypeError, ValueError):
        micro = -1
    if micro < 0:
        raise SessionError(f"`{key}` takes an amount in USD of at least 0, not `{usd}`")
    return micro


def count_of(calls: Any) -> int:
    """
    Returns the number of *calls* of a turn, 0 if it is not known.

    Raises SessionError if it is no whole number of at least 0.
    """
    if calls is None:
        return 0
    if isinstance(calls, bool) or not isinstance(calls, int) or calls < 0:
        raise SessionError(f"`calls` is how many tool calls the turn has, a whole number, not `{calls!r:.80}`")
    return int(calls)


def settings_of(held: dict[str, int]) -> dict[str, Any]:
    """
    Returns the amounts that a child holds, as settings of its `Budget`.
    """
    settings: dict[str, Any] = {"max_calls": None, "max_turns": None, "max_tokens": None, "max_cost_usd": None}
    settings |= {"max_elapsed": None, "final_answer_reserve_usd": 0.0}
    for name, amount in held.items():
        if name == "max_cost":
            settings["max_cost_usd"] = amount / 1_000_000
        elif name == "max_elapsed":
            settings["max_elapsed"] = max(amount, 1) / 1000
        else:
            settings[name] = amount
    return settings
