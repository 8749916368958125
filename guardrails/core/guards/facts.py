"""
The facts that a guard is told beside the call and the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardrails.core.retries.serving import Retried
from guardrails.core.state.entries import Entry
from guardrails.core.state.holds import NOTHING
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Denial


if TYPE_CHECKING:
    from guardrails.core.retries.model import RetryModel


@dataclass(slots=True)
class Facts:
    """
    Everything a decision depends on that is neither in the call nor in the state; recorded, so that a replay is exact.
    """

    now_ms: int
    tool: Tool
    cost: int = 0
    """Estimated cost of the call in micro-dollars."""
    tokens: int = 0
    """Estimated tokens of the call."""
    turn: int = 0
    """Number of the present turn."""
    known: frozenset[str] | None = None
    """The tools there are; None: nobody said."""
    duration_ms: int = 0
    """Once the call is done: how long it took."""
    guess: tuple[int, int] = NOTHING
    """Of what nobody estimates, what calls of the tool have used on average: micro-dollars, tokens."""
    retried: Retried | None = None
    """Of a failure, where models are loaded: what they are asked."""
    failed: Entry | None = None
    """Of a call that is to be decided: the latest same call of its session, if that failed."""
    no_retry: Denial | None = None
    """Of a failure: why it is not to be repeated though it may pass."""
    models: "Mapping[str, RetryModel] | None" = None
    """Of a call whose arguments do not fit: the models that are loaded."""
