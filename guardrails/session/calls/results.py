"""
Earlier results, kept to be given back; bounded in bytes, the oldest go first.
"""

import os
import threading
import weakref

from collections import OrderedDict
from typing import Final

from guardrails.core.records.digest import Earlier


MAX_BYTES: Final = 4 * 2**20
"""Of one policy's sessions together; a larger cache costs each call more than it gives back (memory that is not warm)."""
OVERHEAD: Final = 450
"""Bytes that an entry costs beside its texts, as tracemalloc counts them."""


class Results:
    """
    A cache of results by session and signature. A result that falls out is only told of, not given back.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._kept: OrderedDict[tuple[str, int], Earlier] = OrderedDict()
        self._bytes = 0
        self._max = max_bytes
        self._lock = threading.RLock()
        _caches.add(self)

    def keep(self, session: str, sig: int, earlier: Earlier) -> None:
        """
        Remember the result of a call; *earlier* is the cache's from here on, its texts take no more than they say
        (`jsonable.exact`).
        """
        key, kept, most = (session, sig), self._kept, self._max
        size = len(earlier.payload) + len(earlier.arguments) + OVERHEAD
        with self._lock:
            total = self._bytes
            if key in kept:
                total -= _size(kept.pop(key))
            if size <= most:
                kept[key] = earlier
                total += size
                while total > most:
                    _, oldest = kept.popitem(False)
                    # `_size`, in place: where the cache is full, each call comes here.
                    total -= len(oldest.payload) + len(oldest.arguments) + OVERHEAD
            self._bytes = total

    def find(self, session: str, sig: int | None) -> Earlier | None:
        """
        Returns the result of the latest call of that signature.
        """
        if sig is None:
            return None
        key = (session, sig)
        with self._lock:
            earlier = self._kept.get(key)
            if earlier is not None:
                self._kept.move_to_end(key)
        return earlier

    @property
    def size(self) -> int:
        """
        Bytes that are kept.
        """
        return self._bytes

    def _begin_in_child(self) -> None:
        self._lock = threading.RLock()
        # The fork may have come between a change and its count.
        self._bytes = sum(map(_size, self._kept.values()))


_caches: "weakref.WeakSet[Results]" = weakref.WeakSet()


def _after_fork() -> None:
    # A lock that another thread of the parent held would never be released in the child.
    for results in _caches:
        results._begin_in_child()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _size(earlier: Earlier) -> int:
    return len(earlier.payload) + len(earlier.arguments) + OVERHEAD
