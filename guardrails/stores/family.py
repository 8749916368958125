"""
The store of a sub-agent's session: its counters are those of the whole family.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from guardrails.core.state.family import join, part
from guardrails.core.state.state import SessionState

from .base import Store


T = TypeVar("T")


class FamilyStore:
    """
    *store*, where the named counters of a session are those of the session *root*, and each hears of the others' work.

    Per-tool budgets, rates and growth caps then hold for a session and all its children together: a sub-agent cannot
    start them afresh. The first key of an update is the session's own; any others, such as its scopes, are no family.
    """

    def __init__(self, store: Store, root: str) -> None:
        self._store = store
        self._root = root

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. In *step*, `family` of the session's state places an event among those of its family.
        """

        def shared(states: list[SessionState]) -> T:
            *own, root = states
            child = own[0]
            events = child.n
            join(child, root, keys[0])
            try:
                return step(own)
            finally:
                part(child, root, keys[0], event=child.n != events)

        return self._store.update((*keys, self._root), shared)

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._store.forget(key)

    def __len__(self) -> int:
        return len(self._store)
