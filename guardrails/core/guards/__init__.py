"""
The guards of the library, one file each.
"""

from collections.abc import Iterable
from typing import Final

from guardrails.core.guards.access.approve import Approve
from guardrails.core.guards.access.shell import Shell
from guardrails.core.guards.access.tool_filter import ToolFilter
from guardrails.core.guards.access.validation import Validation
from guardrails.core.guards.access.workspace import Workspace
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.denials import Denials
from guardrails.core.guards.limits.growth import Growth
from guardrails.core.guards.limits.rate import Rate
from guardrails.core.guards.limits.streak import Streak
from guardrails.core.guards.loops import Loops
from guardrails.core.guards.results.retry_budget import RetryBudget
from guardrails.core.guards.results.retryable import Retryable
from guardrails.core.guards.results.summary import Summary
from guardrails.core.guards.results.truncate import Truncate

from .base import Guard


Kinds = tuple[type[Guard], ...]

GUARDS: Final[Kinds] = (
    ToolFilter,
    Validation,
    Workspace,
    Shell,
    Approve,
    Budget,
    Growth,
    Rate,
    Streak,
    Denials,
    Duplicates,
    Loops,
    RetryBudget,
    Retryable,
    Summary,
    Truncate,
)
"""Every guard of the library in the order of a chain; a person's own stand before the last, which bounds what all say."""


def kinds_of(own: Iterable[type[Guard]]) -> Kinds:
    """
    Returns the guards that a policy may have, in their order: those of the library, and a person's *own* before the
    last.
    """
    taken = {cls.name for cls in GUARDS}
    return (*GUARDS[:-1], *(cls for cls in dict.fromkeys(own) if cls.name not in taken), GUARDS[-1])


def place_of(guard: Guard) -> float:
    """
    Returns the place of *guard* among others: one of your own before `truncate`, which bounds the words of all others.
    """
    kinds = [cls.name for cls in GUARDS]
    return kinds.index(guard.name) if type(guard) in GUARDS else len(kinds) - 1.5
