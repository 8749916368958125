"""
The fuse of a cost limit: a model response whose price nobody knows blows it, also if it does not say what it used.

It is one of the state's counters, as the fuses of `growth` are, so that a family shares it and an extension replaces it.
"""

from typing import Final

from guardrails.core.state.state import OVERFLOW, SessionState


BLOWN: Final = -1
"""A counter of a fuse that has blown."""
PREFIX: Final = "budget.unpriced:"
"""The counter's name, before that of the model."""
UNTOLD: Final = "budget.untold:"
"""The same of a response that did not say what it used."""
NAME_SHOWN: Final = 80
"""Characters of the model's name."""


def blow(model: str, *, untold: bool) -> dict[str, int]:
    """
    Returns the counter once a response of *model* had no price; if *untold*, it did not tell its usage.
    """
    return {(UNTOLD if untold else PREFIX) + model[:NAME_SHOWN]: BLOWN}


def blown_by(state: SessionState) -> tuple[str, bool] | None:
    """
    Returns the model whose response had no price, `""` if its name is not known, and whether it did not tell its usage.
    Returns None if there was no such response.
    """
    meters = state.meters
    if BLOWN not in meters.values():
        return None
    for key, value in meters.items():
        if value == BLOWN and key.startswith((PREFIX, UNTOLD)):
            return key.partition(":")[2], key.startswith(UNTOLD)
    return ("", False) if meters.get(OVERFLOW) == BLOWN else None
