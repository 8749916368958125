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


class Names(Recent[str, int]):
    """
    Names that were given so far, each with how often.
    """

    def give(self, name: str) -> str:
        """
        *name* as it is, but if it was given before with how often it was: `7`, `7:2`, `7:3`.
        """
        times = self[name] = self.get(name, 0) + 1
        return name if times == 1 else f"{name}:{times}"
