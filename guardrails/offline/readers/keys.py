"""
A set of 64-bit numbers in 12 to 24 bytes each, which forgets the oldest of very many.
"""

from array import array
from collections.abc import Iterable
from typing import Final


MAX_KEYS: Final = 2_000_000
"""Numbers that are certainly remembered; twice as many at most."""
_FEWEST: Final = 1 << 15


class Keys:
    """
    Numbers above 0, evenly spread as hashes are.

    They stand in two open-addressed tables. A newer one that is full becomes the older one, whose numbers are forgotten.
    """

    def __init__(self, most: int = MAX_KEYS) -> None:
        self._most = most
        self._older: array[int] | None = None
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._slots = _slots(_FEWEST)
        self._mask = _FEWEST - 1
        self._room = _room(_FEWEST, self._most)

    def add(self, key: int) -> bool:
        """
        Returns whether *key* is new; it is remembered.
        """
        slots, mask = self._slots, self._mask
        at = key & mask
        while found := slots[at]:
            if found == key:
                return False
            at = at + 1 & mask
        older = self._older
        if older is not None and _holds(older, key):
            return False
        slots[at] = key
        self._count += 1
        if self._count >= self._room:
            self._make_room()
        return True

    def to_bytes(self) -> tuple[bytes, bytes]:
        """
        Returns the older and the newer numbers, as `add_bytes` takes them.
        """
        return _packed(self._older or ()), _packed(self._slots)

    def add_bytes(self, older: bytes, newer: bytes) -> None:
        """
        Add the data of `to_bytes`.
        """
        if older:
            self._older = _filled(array("Q", older), len(older) // 8)
        for key in array("Q", newer):
            self.add(key)

    def _make_room(self) -> None:
        if self._count >= self._most:
            self._older = self._slots
            self._begin()
            return
        self._slots = _filled(self._slots, self._count)
        self._mask = len(self._slots) - 1
        self._room = _room(len(self._slots), self._most)


def _slots(size: int) -> "array[int]":
    return array("Q", bytes(8 * size))


def _room(size: int, most: int) -> int:
    return min(size * 2 // 3, most)


def _filled(keys: Iterable[int], count: int) -> "array[int]":
    """
    A table of *count* different *keys*, zeros among them left out, with room for half as many more.
    """
    size = _FEWEST
    while size < 2 * count:
        size *= 2
    slots, mask = _slots(size), size - 1
    for key in filter(None, keys):
        at = key & mask
        while slots[at]:
            at = at + 1 & mask
        slots[at] = key
    return slots


def _holds(slots: "array[int]", key: int) -> bool:
    mask = len(slots) - 1
    at = key & mask
    while found := slots[at]:
        if found == key:
            return True
        at = at + 1 & mask
    return False


def _packed(slots: Iterable[int]) -> bytes:
    return array("Q", filter(None, slots)).tobytes()
