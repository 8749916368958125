"""
What a store is.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ..state import SessionState


T = TypeVar("T")


class Store(Protocol):
    """
    Keeps a `SessionState` by key and changes it atomically.
    """

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        Run *step* on the states of *keys*, atomically, and keep what it made of them; its result.

        *step* changes nothing but the states it is given and may be run again. A key that is not there is a new state.
        Where *step* raises, nothing is kept.
        """
        ...

    def forget(self, key: str) -> None:
        """
        Drop the state of *key*.
        """
        ...

    def __len__(self) -> int:
        """
        How many states are kept.
        """
        ...
