"""
A store of one's own, as `docs/extend.md` describes it: sessions in a mapping of bytes. `test_contract.py` holds it to its promises.
"""

import threading

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import TypeVar

from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable
from guardrails.stores import NESTED, Stored, When, at_forks


T = TypeVar("T")


class MappedStore:
    """
    States packed in *states*, behind one lock; for the threads of one process.
    """

    def __init__(self, states: MutableMapping[str, bytes]) -> None:
        self.states = states
        self._at_fork("child")
        at_forks(self)

    def _at_fork(self, when: When) -> None:
        # The lock of another thread would never be released in a forked process.
        if when == "child":
            self._lock = threading.RLock()  # reentrant, so a step that asks the store gets an error, and does not hang
            self._in_step = False

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`.
        """
        with self._lock:
            if self._in_step:
                raise RuntimeError(NESTED)
            states = [unpack(self.states[key]) if key in self.states else SessionState() for key in keys]
            self._in_step = True
            try:
                result = step(states)
            finally:
                self._in_step = False
            packed = [pack(state) for state in states]  # all of them, before any is stored
            self.states.update(zip(keys, packed, strict=True))
            return result

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self.update([], lambda _: self.states.pop(key, None))

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        packed = self.update([], lambda _: self.states.get(key))
        if packed is None:
            return None
        try:
            return Stored(key, packed, unpack(packed).now_ms)
        except StateUnreadable:  # one that a newer version wrote is listed all the same
            return Stored(key, packed, 0)

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`.
        """
        keys = self.update([], lambda _: [key for key in self.states if key.startswith(prefix)])
        yield from filter(None, map(self.read, keys))

    def __len__(self) -> int:
        return len(self.states)
