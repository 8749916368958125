"""
The states of a `RedisStore` one by one: listed, read and dropped in parts, so that calls of others get in between.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from guardrails.core.values.names import SCOPES
from guardrails.core.values.units import duration_ms
from guardrails.stores.base import Stored
from guardrails.stores.live import Live

from .change import name_of
from .scripts import DROP, HEAD_BYTES, MARK_BYTES
from .wire import Wire


T = TypeVar("T")
_BATCH: Final = 500
_LAST: Final = b"\xff"
"""No key begins with it: it is in no UTF-8."""


class Rows(ABC):
    """
    The steps of `RedisStore` on its states beside `update`.
    """

    _stem: bytes
    _live: Live

    @abstractmethod
    def _ask(self, ask: Callable[[Wire, float], T]) -> T:
        """
        Returns the answer that *ask* gets of a wire in a limit of time; asked again while that may help.
        """

    def __len__(self) -> int:
        return int(self._ask(lambda wire, limit: wire.ask(limit, b"ZCARD", self._stem + b"keys")))

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        name = name_of(self._stem, key)
        found = self._ask(lambda wire, limit: wire.ask(limit, b"GET", name))
        return None if found is None else _stored(name_of(b"", key)[2:], found)

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`. They come in the order of their keys.
        """
        for keys in self._keys(prefix):
            names = [self._stem + b"s:" + key for key in keys]
            found = self._ask(lambda wire, limit, names=names: wire.ask(limit, b"MGET", *names))  # type: ignore[misc]
            yield from (_stored(key, said) for key, said in zip(keys, found, strict=True) if said is not None)

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._drop([name_of(b"", key)[2:]], b"")
        self._live.take(key)

    def prune(
        self,
        idle: float | str,
        *,
        scopes: bool = False,
        prefix: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """
        Drop sessions, and *scopes* if asked, that have not changed for *idle* (seconds, or `30d`) and whose key begins
        with *prefix*. Returns the number of dropped states. The function *progress* is told now and then how many they
        are so far.

        See `SqliteStore.prune`. Raises ValueError if *idle* is no duration.
        """
        idle_ms = b"%d" % duration_ms(idle)
        dropped = 0
        for keys in self._keys(prefix):
            chosen = [key for key in keys if scopes or not key.startswith(SCOPES.encode())]
            dropped += self._drop(chosen, idle_ms) if chosen else 0
            if progress is not None:
                progress(dropped)
        return dropped

    def _keys(self, prefix: str) -> Iterator[list[bytes]]:
        begins = name_of(b"", prefix)[2:]
        above, to = b"[" + begins, b"(" + begins + _LAST
        while True:
            command = (b"ZRANGEBYLEX", self._stem + b"keys", above, to, b"LIMIT", b"0", b"%d" % _BATCH)
            keys = self._ask(lambda wire, limit, command=command: wire.ask(limit, *command))  # type: ignore[misc]
            if keys:
                yield keys
            if len(keys) < _BATCH:
                return
            above = b"(" + keys[-1]

    def _drop(self, keys: list[bytes], idle_ms: bytes) -> int:
        names = [self._stem + name for name in (b"keys", *(b"s:" + key for key in keys))]
        begins = b"%d" % (len(self._stem) + 3)
        return int(self._ask(lambda wire, limit: wire.run(DROP, names, [begins, idle_ms], limit)))


def _stored(key: bytes, said: bytes) -> Stored:
    at = said[MARK_BYTES:HEAD_BYTES]
    return Stored(key.decode("utf-8", "surrogatepass"), said[HEAD_BYTES:], int(at) if at.isdigit() else 0)
