"""
The settings of `Loops` that have keys of their own, and their old spellings.
"""

from typing import Annotated, Final, TypedDict

from guardrails.core.guards.settings import Keys
from guardrails.core.values.bounds import Ge, Le

from .loop_words import WORDS


Count = Annotated[int, Ge(1), Le(200)]
SPELLINGS: Final[dict[str, str]] = {
    **{f"{name}_{grade}": f"{name}.{grade}" for name in WORDS for grade in ("nudge", "deny") if name != "wait"},
    "wait_nudge": "wait.nudge",
}
"""By the old one; each is still read."""


class FromCalls(TypedDict, total=False):
    """
    From how many calls on the next is nudged, or denied; none: never.
    """

    nudge: Count | None
    deny: Count | None


class ToldFromCalls(TypedDict, total=False):
    """
    From how many calls on the next is nudged; none: never.
    """

    nudge: Count | None


Grades = Annotated[FromCalls, Keys()]
Waits = Annotated[ToldFromCalls, Keys()]
