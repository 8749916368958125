"""
Sessions in the memory of one process.
"""

import os
import threading
import weakref

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ..packing import pack, unpack
from ..state import SessionState


T = TypeVar("T")
LIVE: Final = 1_000
"""Sessions kept as objects; those that were idle the longest are kept packed (about a fifth of the size)."""


class MemoryStore:
    """
    States behind one lock; what a crash of the process loses is everything.

    Where a step raises, a state that was kept as an object may be half changed; the steps of this library do not
    raise, and an interruption in the middle of one (Ctrl-C) leaves more charged than was used, never less.
    """

    def __init__(self, live: int = LIVE) -> None:
        self._live: OrderedDict[str, SessionState] = OrderedDict()
        self._packed: dict[str, bytes] = {}
        self._max_live = max(1, live)
        self._lock = threading.Lock()
        _stores.add(self)

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`.
        """
        with self._lock:
            live = self._live
            if len(keys) == 1 and (first := live.get(keys[0])) is not None:
                live.move_to_end(keys[0])
                return step([first])
            states = [self._state(key) for key in keys]
            try:
                return step(states)
            finally:
                if len(live) > self._max_live:
                    self._pack_idle(len(keys))

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        with self._lock:
            self._live.pop(key, None)
            self._packed.pop(key, None)

    def __len__(self) -> int:
        return len(self._live) + len(self._packed)

    def _state(self, key: str) -> SessionState:
        state = self._live.get(key)
        if state is None:
            packed = self._packed.pop(key, None)
            state = self._live[key] = SessionState() if packed is None else unpack(packed)
        elif len(self._live) > 1:
            self._live.move_to_end(key)
        return state

    def _pack_idle(self, in_use: int) -> None:
        while len(self._live) > max(self._max_live, in_use):
            key = next(iter(self._live))
            # Packed first: a session that cannot be packed must stay what it is, and not start afresh.
            self._packed[key] = pack(self._live[key])
            del self._live[key]

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()


_stores: "weakref.WeakSet[MemoryStore]" = weakref.WeakSet()


def _after_fork() -> None:
    # A lock that another thread of the parent held would never be released in the child.
    for store in _stores:
        store._renew_lock()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
