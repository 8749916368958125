"""
Earlier results, kept to be given back; bounded in bytes, the oldest go first.
"""

import os
import threading

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
        self._max = max_bytes
        self.size = 0
        """Bytes that are kept."""

    def keep(self, session: str, sig: int, earlier: Earlier) -> None:
        """
        Remember the result of a call; *earlier* is the cache's from here on, its texts take no more than they say
        (`jsonable.exact`).
        """
        key, kept = (session, sig), self._kept
        size = len(earlier.payload) + len(earlier.arguments) + OVERHEAD
        with _lock:
            if key in kept:
                self.size -= _size(kept.pop(key))
            if size <= self._max:
                kept[key] = earlier
                self.size += size
                while self.size > self._max:
                    self.size -= _size(kept.popitem(last=False)[1])

    def find(self, session: str, sig: int | None) -> Earlier | None:
        """
        Returns the result of the latest call of that signature.
        """
        with _lock:
            earlier = None if sig is None else self._kept.get((session, sig))
            if earlier is not None and sig is not None:
                self._kept.move_to_end((session, sig))
        return earlier


def _size(earlier: Earlier) -> int:
    return len(earlier.payload) + len(earlier.arguments) + OVERHEAD


def _afresh() -> None:
    # A lock that another thread of the parent held would never be released in a forked child.
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


_lock: threading.RLock
_afresh()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_afresh)
