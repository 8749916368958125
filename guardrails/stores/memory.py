"""
Sessions in the memory of one process.
"""

import threading

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState
from guardrails.core.values.logs import log

from .base import NESTED, Stored, When, at_forks


T = TypeVar("T")
LIVE: Final = 1_000
"""Sessions kept as objects; those that were idle the longest are kept packed (about a fifth of the size)."""


class MemoryStore:
    """
    States behind one lock. A crash of the process loses all of them.

    A change that a step has made stays, even if the step raises.

    A step must not ask the store: a guard or a signal handler that does so from inside one gets a RuntimeError. A
    state that cannot be packed stays an object, which the log says once.
    """

    def __init__(self, live: int = LIVE) -> None:
        self._live: OrderedDict[str, SessionState] = OrderedDict()
        self._packed: dict[str, bytes] = {}
        self._max_live = max(1, live)
        self._stuck: set[str] = set()
        """Sessions that could not be packed."""
        self._begin()
        at_forks(self)

    def _begin(self) -> None:
        # Reentrant, so that a step which asks the store finds itself out instead of waiting for itself.
        self._lock = threading.RLock()
        self._in_step = False

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`.
        """
        with self._lock:
            if self._in_step:
                raise RuntimeError(NESTED)
            self._in_step = True
            try:
                if len(keys) == 1 and (first := self._live.get(keys[0])) is not None:
                    self._live.move_to_end(keys[0])
                    return step([first])
                states = [self._state(key) for key in keys]
                try:
                    return step(states)
                finally:
                    if len(self._live) - len(self._stuck) > self._max_live:
                        self._pack_idle(keys)
            finally:
                self._in_step = False

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        with self._lock:
            if self._in_step:
                raise RuntimeError(NESTED)
            self._live.pop(key, None)
            self._packed.pop(key, None)
            self._stuck.discard(key)

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        with self._lock:
            if self._in_step:
                raise RuntimeError(NESTED)
            state, packed = self._live.get(key), self._packed.get(key)
            try:
                if state is not None:
                    return Stored(key, pack(state), state.now_ms)
                return None if packed is None else Stored(key, packed, unpack(packed).now_ms)
            except Exception:  # noqa: BLE001  one that cannot be packed, or read, is listed all the same
                return Stored(key, packed or b"", 0 if state is None else state.now_ms)

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`.
        """
        with self._lock:
            if self._in_step:
                raise RuntimeError(NESTED)
            keys = [key for kept in (self._live, self._packed) for key in kept if key.startswith(prefix)]
        # One that was forgotten meanwhile is none.
        yield from filter(None, map(self.read, keys))

    def _at_fork(self, when: When) -> None:
        if when == "child":
            # A lock that another thread of the parent held would never be released here.
            self._begin()

    def __len__(self) -> int:
        return len(self._live) + len(self._packed)

    def _state(self, key: str) -> SessionState:
        state = self._live.get(key)
        if state is None:
            packed = self._packed.get(key)
            state = self._live[key] = SessionState() if packed is None else unpack(packed)
            self._packed.pop(key, None)
        elif len(self._live) > 1:
            self._live.move_to_end(key)
        return state

    def _pack_idle(self, in_use: Sequence[str]) -> None:
        excess = len(self._live) - len(self._stuck) - self._max_live
        oldest = list(islice(self._live, excess + len(self._stuck) + len(in_use)))
        for key in [key for key in oldest if key not in self._stuck and key not in in_use][:excess]:
            # Packed first: a session that cannot be packed must stay what it is, and not start afresh.
            try:
                self._packed[key] = pack(self._live[key])
            except Exception as error:  # noqa: BLE001  it is another session whose call this would fail
                self._stuck.add(key)
                log.error("the state of `%s` cannot be packed, so it stays as it is: %r", key, error)
            else:
                del self._live[key]
