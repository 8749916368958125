"""
How the scopes of a policy may be named, and which guards they may have.
"""

import re

from typing import Final

from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard
from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.growth import Growth
from guardrails.core.guards.limits.rate import Rate


SCOPE_GUARDS: Final[tuple[type[Guard], ...]] = (Budget, Growth, Rate)
"""The library's guards that a scope may have: what the others look at is one session's own."""
SESSION_ONLY: Final = ("max_turns",)
"""Settings of theirs that are about one session."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TAKEN: Final = frozenset({"session", "scopes", "store", "tools", *(cls.name for cls in GUARDS)})


def scope_name(name: str) -> str:
    """
    *name*, where it may name a scope; codes begin with it. Raises ValueError.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"a scope is named like `user`: a letter, then letters, digits and `_`, 32 at most, not `{name}`"
        )
    if name in _TAKEN:
        raise ValueError(f"a scope cannot be called `{name}`: codes begin with it, and `{name}` begins others already")
    return name
