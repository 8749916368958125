"""
The family of a session: what a child reserves of its parent's limits, and the share that grows.
"""

from collections.abc import Mapping
from math import ceil
from typing import Final

from guardrails.core.events import ITERATIONS
from guardrails.core.guards import amounts as units
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


def reserve(child: Ledger, amounts: dict[str, int], share: float, *, again: bool) -> None:
    """
    Reserve *amounts* for *child* of its parent's limits, and a *share* of what is left of the others; see
    `Session.child`.
    """
    parent = child.parent
    if parent is None or not 0 < share <= 1:
        raise SessionError(f"`share` is above 0 and at most 1, not {share}")
    if ITERATIONS in amounts:
        amounts["max_turns"] = amounts.pop(ITERATIONS)
    if child.read(lambda state, now: state.closed):
        raise SessionError(f"`{child.id}` was closed: give the next child another name")
    child.share = share if share < 1 else None
    held = parent.read(lambda state, _: state.reserved.get(child.id)) if again else None
    runs = held is not None and child.read(lambda state, _: state.n > 0)
    if not runs:
        part = {} if share == 1 else {"share": share}
        made = parent.event("reserve", {"child": child.id, "amounts": amounts, **part}, needed=True)
        held = made.limits if made is not None else None
    settings = units.settings_of(held or {})
    child.lay(lambda chain: chain.with_budget(**settings))
    if not runs:
        child.event("open", {"limits": held or {}})


def grow(child: Ledger, code: str | None) -> bool:
    """
    Take the share of *child* once more from its parent's rest of the limit that *code* names. Returns whether it did.
    The last call, turn or token stays the parent's, which has an answer to give. A parent with a share of its own grows
    first.
    """
    limit, share, parent = LIMITS.get(code or ""), child.share, child.parent
    if limit is None or share is None or parent is None:
        return False
    budget = parent.chain.budget or NO_LIMITS

    def left() -> int:
        return parent.look(lambda state, now, _: budget.left(state, limit, now)) or 0

    while (available := left()) <= 1:
        if not grow(parent, code):
            return False
    amounts = {limit: min(ceil(available * share), available - 1)}
    try:
        take(child, amounts)
    except SessionError:  # another child was quicker, or this one is closed
        return False
    child.event("extend", {"amounts": amounts}, needed=True)
    return True


def take(child: Ledger, amounts: Mapping[str, int]) -> None:
    """
    Reserve *amounts* more for *child* from its parent, if it has one. Raises SessionError if less is left.
    """
    if child.parent is not None:
        child.parent.event("reserve", {"child": child.id, "amounts": amounts, "more": True}, needed=True)
