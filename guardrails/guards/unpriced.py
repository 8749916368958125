"""
The fuse of a cost limit: a model response whose price nobody knows blows it.

It is one of the state's counters, as the fuses of `growth` are, so that a family shares it and an extension replaces it.
"""

from typing import Final

from ..state import OVERFLOW, SessionState


BLOWN: Final = -1
"""A counter of a fuse that has blown."""
PREFIX: Final = "budget.unpriced:"
"""The counter's name, before that of the model."""
NAME_SHOWN: Final = 80
"""Characters of the model's name."""


def blow(model: str) -> dict[str, int]:
    """
    The counter once a response of *model* had no price.
    """
    return {PREFIX + model[:NAME_SHOWN]: BLOWN}


def blown_by(state: SessionState) -> str | None:
    """
    The model whose response had no price, `""` if its name is not known; None: there was none.
    """
    meters = state.meters
    if BLOWN not in meters.values():
        return None
    for key, value in meters.items():
        if value == BLOWN and key.startswith(PREFIX):
            return key.removeprefix(PREFIX)
    return "" if meters.get(OVERFLOW) == BLOWN else None


def told(model: str, limit: str) -> str:
    """
    Why the cost *limit* ends a session after a response of *model*, and what to do.
    """
    named = f"the model `{model}`" if model else "a model"
    return (
        f"No price is known for {named}, so the cost limit ({limit}) cannot be held: set it under `prices` in the policy, "
        "or pass `cost_usd` to `charge`. Stopping tool loop."
    )
