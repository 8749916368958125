"""
Earlier results, kept to be given back; bounded in bytes, the oldest go first.
"""

from typing import Final

from guardrails.core.records.digest import Earlier


MAX_BYTES: Final = 4 * 2**20
"""Of one policy's sessions together; a larger cache costs each call more than it gives back (memory that is not warm)."""
OVERHEAD: Final = 450
"""Bytes that an entry costs beside its texts, as tracemalloc counts them."""


class Results:
    """
    A cache of results by session and signature, of about *max_bytes*. A result that falls out is only told of, not given
    back.

    Half of it is new and half is old: once the new half is full it is the old one, and what was old is gone. No lock: where
    two threads meet, a sum is off by a result until then.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._half = max_bytes // 2
        self._size = 0
        self._new: dict[tuple[str, int | None], Earlier] = {}
        self._old: dict[tuple[str, int | None], Earlier] = {}

    def keep(self, session: str, sig: int, earlier: Earlier) -> None:
        """
        Remember the result of a call; *earlier* is the cache's from here on, its texts take no more than they say
        (`jsonable.exact`).
        """
        size = self._size + len(earlier.payload) + len(earlier.arguments) + OVERHEAD
        if size > self._half:
            self._old, self._new, size = self._new, {}, size - self._size
        self._size = size
        self._new[session, sig] = earlier

    def find(self, session: str, sig: int | None) -> Earlier | None:
        """
        Returns the result of the latest call of that signature.
        """
        return self._new.get((session, sig)) or self._old.get((session, sig))
