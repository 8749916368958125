"""
The learned models of a chain: those that are loaded now, by the name that a policy gives them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from .model import RetryModel


class Models:
    """
    The models of a policy. A loader replaces *loaded* as a whole; a decision reads it once.
    """

    __slots__ = ("loaded",)

    def __init__(self) -> None:
        self.loaded: Mapping[str, RetryModel] = {}


NO_MODELS: Final = Models()


class Judged(NamedTuple):
    """
    The question to a model about a failure, and its answer: for the record.
    """

    model: str
    explored: bool = False
    """It would not have paid, and is advised all the same, to learn from what comes of it."""


class Advised(NamedTuple):
    """
    A verdict that was recorded: what a replay goes by, since models change.
    """

    retryable: bool
    wait_ms: int | None
    retries: int
