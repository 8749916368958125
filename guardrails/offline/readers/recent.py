"""
A dict that forgets its oldest entries.
"""

from typing import Final, TypeVar


K = TypeVar("K")
V = TypeVar("V")

MAX_KEPT: Final = 100_000


class Recent(dict[K, V]):
    """
    At most `MAX_KEPT` entries: a new key beyond them takes the place of the one that was put first.

    The memory of a reader must not grow with the file.
    """

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= MAX_KEPT and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)


class Seen(Recent[K, None]):
    """
    Keys that were met before.
    """

    def add(self, key: K | None) -> bool:
        """
        Returns whether *key* is new, which is then remembered; None always is.
        """
        if key is None:
            return True
        new = key not in self
        self[key] = None
        return new
