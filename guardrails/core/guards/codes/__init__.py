"""
Every code that the library says, explained: for `guardrails explain` and for the tables of the documentation.

A guard declares its codes in its own class. Their meaning stands here, so that a program that runs never loads it.
"""

from collections.abc import Mapping
from typing import Final

from guardrails.core.guards import GUARDS
from guardrails.core.guards.access.held import Held
from guardrails.core.guards.limits.tool_budget import ToolBudget

from .access import ACCESS
from .engine import ENGINE, guard_failed
from .explained import Explained
from .failures import FAILURES, STATUSES
from .limits import LIMITS
from .repeats import REPEATS


_PAGES: Final = {**{cls.name: f"guards/{cls.name}.md" for cls in GUARDS}, ToolBudget.name: "guards/budget.md"}

CODES: Final[Mapping[str, Explained]] = {
    one.code: one
    for one in (
        *ACCESS,
        *LIMITS,
        *REPEATS,
        *(guard_failed(name, page) for name, page in _PAGES.items()),
        guard_failed(Held.name),
        *ENGINE,
    )
}
"""Those that stand in `code`, of an envelope, a record or the end of a loop; those of scopes without the scope's name."""
EXPLAINED: Final[Mapping[str, Explained]] = {**CODES, **{one.code: one for one in (*FAILURES, *STATUSES)}}
"""These, and beside them the kinds of failures and the statuses."""

__all__ = ["CODES", "EXPLAINED", "Explained", "guard_failed"]
