"""
The guards of the library, one file each.
"""

from collections.abc import Iterable
from typing import Final

from .base import Guard
from .budget import Budget
from .denials import Denials
from .duplicates import Duplicates
from .growth import Growth
from .loops import Loops
from .rate import Rate
from .retryable import Retryable
from .shell import Shell
from .streak import Streak
from .summary import Summary
from .tool_filter import ToolFilter
from .truncate import Truncate
from .validation import Validation
from .workspace import Workspace


Kinds = tuple[type[Guard], ...]

GUARDS: Final[Kinds] = (
    ToolFilter,
    Validation,
    Workspace,
    Shell,
    Budget,
    Growth,
    Rate,
    Streak,
    Denials,
    Duplicates,
    Loops,
    Retryable,
    Summary,
    Truncate,
)
"""Every guard of the library in the order of a chain; a person's own stand before the last, which bounds what all say."""


def kinds_of(own: Iterable[type[Guard]]) -> Kinds:
    """
    The guards that a policy may have, in their order: those of the library, and a person's *own* before the last.
    """
    taken = {cls.name for cls in GUARDS}
    return (*GUARDS[:-1], *(cls for cls in dict.fromkeys(own) if cls.name not in taken), GUARDS[-1])
