"""
Sessions in the memory of one process.
"""

import threading

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from guardrails.core.state import SessionState
from guardrails.core.values.logs import warn_once

from . import NESTED, Stored, When, at_forks


T = TypeVar("T")
LIVE: Final = 10_000
"""Sessions whose state is kept as an object, of 3 KB after three calls and 11 KB with a full window."""


class MemoryStore:
    """
    States behind one lock. A crash of the process loses all of them. Those that were idle the longest, beyond *live*, are packed: about a
    third of the size, for half a call's time when they come back.

    A change that a step has made stays, even if the step raises.

    A step must not ask the store: a guard or a signal handler that does so from inside one gets a RuntimeError. A
    state that cannot be packed stays an object, which the log says.
    """

    def __init__(self, live: int = LIVE) -> None:
        self._live: OrderedDict[str, SessionState] = OrderedDict()
        self._idle: dict[str, bytes] = {}
        self._most = live
        self._at_fork("child")
        at_forks(self)

    def _at_fork(self, when: When) -> None:
        # A lock that another thread of the parent held would never be released in a child.
        if when == "child":
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
                    for _ in range(len(self._live) - max(self._most, len(keys))):
                        self._pack_one()
            finally:
                self._in_step = False

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self.update([], lambda _: (self._live.pop(key, None), self._idle.pop(key, None)))

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        return self.update([], lambda _: self._stored(key))

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`.
        """
        keys = self.update([], lambda _: [key for key in (*self._live, *self._idle) if key.startswith(prefix)])
        # One that was forgotten meanwhile is none.
        yield from filter(None, map(self.read, keys))

    def _stored(self, key: str) -> Stored | None:
        from guardrails.core.packing import pack, unpack

        state, packed = self._live.get(key), self._idle.get(key, b"")
        if state is None and key not in self._idle:
            return None
        with suppress(Exception):  # one that cannot be packed, or read, is listed all the same
            packed, state = (pack(state), state) if state is not None else (packed, unpack(packed))
        return Stored(key, packed, 0 if state is None else state.now_ms)

    def __len__(self) -> int:
        return len(self._live) + len(self._idle)

    def _state(self, key: str) -> SessionState:
        state = self._live.get(key)
        if state is None:
            state = SessionState()
            if key in self._idle:
                # No session of most programs is ever idle for so long.
                from guardrails.core.packing import unpack

                state = unpack(self._idle[key])
            self._live[key] = state
            self._idle.pop(key, None)
        else:
            self._live.move_to_end(key)
        return state

    def _pack_one(self) -> None:
        # None of those in use: they are the latest. It is in both places rather than in none, should a signal come between.
        from guardrails.core.packing import pack

        key, state = next(iter(self._live.items()))
        try:
            self._idle[key] = pack(state)
            del self._live[key]
        except Exception as error:  # it is another session whose call this would fail
            self._live.move_to_end(key)
            warn_once(f"packing {id(self)}", "the state of `%s` cannot be packed, so it stays as it is: %r", key, error)
