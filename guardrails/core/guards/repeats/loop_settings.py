"""
The settings of `Loops` that have keys of their own, and their old spellings.
"""

from typing import Annotated, Final, TypedDict

from guardrails.core.guards.settings import Keys
from guardrails.core.values.bounds import Ge, Gt, Le

from .loop_words import WORDS


Count = Annotated[int, Ge(1), Le(200)]
SPELLINGS: Final[dict[str, str]] = {
    **{f"{name}_{grade}": f"{name}.{grade}" for name in WORDS for grade in ("nudge", "deny") if name != "wait"},
    "wait_nudge": "wait.nudge",
    "model_nudge": "learned.nudge",
    "model_deny": "learned.deny",
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


class FromProbability(TypedDict, total=False):
    """
    Probabilities that a call brings nothing new. From `nudge` on it is nudged (none: never). From `deny` on the second of
    two identical calls is refused (none: as the model says, 2: never).
    """

    nudge: Annotated[float, Gt(0), Le(1)] | None
    deny: Annotated[float, Gt(0), Le(2)] | None


Grades = Annotated[FromCalls, Keys()]
Waits = Annotated[ToldFromCalls, Keys()]
Learned = Annotated[FromProbability, Keys()]
