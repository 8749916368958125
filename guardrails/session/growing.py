"""
Gives a child a share of its parent's remaining limits: when that is used up, it takes another.
"""

from collections.abc import Mapping
from math import ceil
from typing import Final

from guardrails.core.guards.budget import NO_LIMITS
from guardrails.core.values.errors import SessionError

from .ledger import Ledger


SHARE: Final = 0.125
"""What an adapter gives a sub-agent: of 1,000 calls the first has 125, and the tenth that runs beside it 38."""
LIMITS: Final = {
    "budget.max_calls": "max_calls",
    "budget.max_turns": "max_turns",
    "budget.max_cost_usd": "max_cost",
    "budget.max_tokens": "max_tokens",
}
"""Of each code, the limit as the state names it."""


def grow(child: Ledger, code: str | None) -> bool:
    """
    Take the share of *child* once more from its parent's rest of the limit that *code* names. Returns whether it did.
    The last call, turn or token stays the parent's, which has an answer to give. A parent with a share of its own grows
    first.
    """
    limit, share, parent = LIMITS.get(code or ""), child._share, child._parent  # noqa: SLF001  of one family
    if limit is None or share is None or parent is None:
        return False
    budget = parent._chain.budget or NO_LIMITS  # noqa: SLF001

    def left() -> int:
        return parent._look(lambda state, now, _: budget.left(state, limit, now)) or 0  # noqa: SLF001

    available = left()
    if available <= 1 and grow(parent, code):
        available = left()
    if available <= 1:
        return False
    amounts = {limit: min(ceil(available * share), available - 1)}
    try:
        take(child, amounts)
    except SessionError:  # another child was quicker, or this one is closed
        return False
    child._event("extend", {"amounts": amounts}, needed=True)  # noqa: SLF001
    return True


def take(child: Ledger, amounts: Mapping[str, int]) -> None:
    """
    Reserve *amounts* more for *child* from its parent, if it has one. Raises SessionError if less is left.
    """
    parent = child._parent  # noqa: SLF001
    if parent is not None:
        parent._event("reserve", {"child": child.id, "amounts": amounts, "more": True}, needed=True)  # noqa: SLF001
