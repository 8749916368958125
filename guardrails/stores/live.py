"""
States that a store keeps unpacked beside their written form.
"""

from collections.abc import Iterable
from typing import Any, Final

from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.names import whose


LIVE: Final = 1_000
"""Sessions whose state is kept unpacked too, for when the store still says the same."""


class Held:
    """
    A state, and the store's form of it: *packed*, and a *mark* of its own (a row, a version).
    """

    __slots__ = ("mark", "new", "packed", "state")

    def __init__(self, mark: Any, packed: bytes, state: SessionState) -> None:
        self.mark = mark
        self.packed = packed
        self.state = state
        self.new = b""
        """As it becomes by a step that is under way."""

    def pack(self) -> bytes:
        """
        Returns the state as it is now.
        """
        return pack(self.state)


class Live:
    """
    The *most* states that were used last, by key.
    """

    def __init__(self, most: int) -> None:
        self._most = max(0, most)
        self._held: dict[str, Held] = {}

    def take(self, key: str) -> Held | None:
        """
        Returns the state of *key*, and lets go of it until it is kept again: a state that is half changed must not be
        found.
        """
        return self._held.pop(key, None)

    def keep(self, keys: Iterable[str], states: Iterable[Held]) -> None:
        """
        Have *states*, as they are committed now.
        """
        held = self._held
        for key, state in zip(keys, states, strict=True):
            held[key] = state
        while len(held) > self._most:
            # A copy of the keys is made in one go, so that other threads may keep and take meanwhile.
            for key in list(held)[: len(held) - self._most]:
                held.pop(key, None)

    def clear(self) -> None:
        """
        Forget all.
        """
        self._held.clear()


def unpacked(key: str, packed: bytes | None, store: str) -> SessionState:
    """
    Returns the state of *key* in *store*, a new one for None. Raises StateUnreadable, which names both.
    """
    try:
        return SessionState() if packed is None else unpack(packed)
    except StateUnreadable as error:
        raise StateUnreadable(error.reason, whose(key), store) from error
