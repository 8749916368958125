"""
Stores of states: what each of them does.
"""

import os
import weakref

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

from guardrails.core.state import SessionState


T = TypeVar("T")
When = Literal["before", "parent", "child"]
"""A moment of a fork: before it, after it in the parent, after it in the child."""
NESTED: Final = (
    "a session was asked from inside of its own store's update, such as by a guard or a signal handler: "
    "a guard looks at the `state` it is given"
)


class Stored(NamedTuple):
    """
    A state as a store keeps it.
    """

    key: str
    packed: bytes
    """As `pack` gave it, in this version of the library or another; empty if it cannot be packed, or is damaged."""
    changed_ms: int
    """When it was last changed, in milliseconds since 1970 by the store's clock; in memory: its latest event."""


class Store(Protocol):
    """
    Keeps a `SessionState` by key and changes it atomically.

    A store that may wait, for a file or a lock of another process, says `blocks = True`: asynchronous calls then ask it
    in a thread.
    """

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        Run *step* on the states of *keys*, all different, atomically, and keep the changed states. Returns the step's
        result.

        *step* changes nothing but the states it is given and may be run again. A key that is not there is a new state.
        If *step* raises, nothing is kept. Raises RuntimeError if it is called from inside of a step, StoreError if the
        states cannot be reached.
        """
        ...

    def forget(self, key: str) -> None:
        """
        Drop the state of *key*.
        """
        ...

    def __len__(self) -> int:
        """
        Returns the number of states that are kept.
        """
        ...


class Listed(Store, Protocol):
    """
    A store whose states can be looked at as they are kept, as `guardrails store` does. Sessions need none of it.
    """

    def read(self, key: str) -> Stored | None:
        """
        Returns the state of *key* as it is kept; nothing is changed. Returns None if there is none.
        """
        ...

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        Returns every state whose key begins with *prefix*, each once, in any order.

        They are read in parts, and nothing is locked between two of them. A state that is changed meanwhile comes in
        its old form or in its new one. Raises RuntimeError from inside of a step, StoreError if the states cannot be
        reached.
        """
        ...


_stores: "weakref.WeakSet[Any]" = weakref.WeakSet()
at_forks: Final = _stores.add
"""Have `store._at_fork` called before and after every fork."""


def _all(when: When) -> None:
    for store in list(_stores):
        store._at_fork(when)  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=partial(_all, "before"), after_in_parent=partial(_all, "parent"), after_in_child=partial(_all, "child")
    )
