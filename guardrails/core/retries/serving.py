"""
The learned models of a chain: those that are loaded now, by the name that a policy gives them; and the words of question and answer.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrails.core.values.types import NextAction


if TYPE_CHECKING:
    from .model import RetryModel


RETRIES: Final = "guardrails.retry-model"
LOOPS: Final = "guardrails.loop-model"
"""What a model is of, the `format` of its file: retries that work, or calls that bring nothing new."""


class Models:
    """
    The models of a policy. A loader replaces *loaded* as a whole; a decision reads it once.
    """

    loaded: Mapping[str, "RetryModel"] = {}


NO_MODELS: Final = Models()


class Stakes(NamedTuple):
    """
    The costs of a try by a policy; a success is worth 1.
    """

    retry_cost: float = 0.1
    wait_cost_per_s: float = 0.002
    fix_cost: float = 0.2
    """Of repairing something or correcting the arguments, beside the retry itself."""
    success_usd: float = 1.0
    """The worth of a success in money, to weigh the cost of the tool by."""
    max_wait_ms: int = 60_000
    within: float = 0.1
    """The advised wait is the smallest whose success is at most this share below the best."""


class Advice(NamedTuple):
    """
    The advice after a failure. It is recorded, and a replay goes by it, since models change.
    """

    retryable: bool
    wait_ms: int
    """After which the same call has the probability *p*, whether that pays or not."""
    p: float
    retries: int
    """How many more tries there are: one if a try seldom works; 0 if *retryable* is False."""
    next_action: NextAction
    corrected: float | None = None
    """How likely a call with other arguments works, if enough calls of this very tool say so."""
