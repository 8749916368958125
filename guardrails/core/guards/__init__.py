"""
The guards of the library, one file each.
"""

from collections.abc import Iterable
from typing import Final

from .approve import Approve
from .base import Guard
from .budget import Budget
from .denials import Denials
from .duplicates import Duplicates
from .growth import Growth
from .loop_score import LoopScore
from .loops import Loops
from .rate import Rate
from .retry_budget import RetryBudget
from .retryable import Retryable
from .rules import Rules
from .shell import Shell
from .streak import Streak
from .summary import Summary
from .tool_filter import Held, ToolFilter
from .truncate import Truncate
from .validation import Validation
from .workspace import Workspace


Kinds = tuple[type[Guard], ...]

GUARDS: Final[Kinds] = (
    *(ToolFilter, Validation, Workspace, Shell, Rules, Approve),
    *(Budget, Growth, Rate, Streak, Denials),
    *(Duplicates, Loops, LoopScore, Retryable, RetryBudget, Summary, Truncate),
)
"""Every guard of the library in the order of a chain; a person's own stand before the last, which bounds what all say."""
IMPLIED: Final[Kinds] = (Approve, Held)
"""Guards that a declaration of a tool stands for."""
LIMITING: Final = Budget
"""The guard of the limits that a session has, its children share, and `extend` raises; without any it counts all the same."""


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
