"""
Stores in a table of a database: one update is one transaction.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from guardrails.core.state import SessionState
from guardrails.core.values.errors import StoreError
from guardrails.core.values.names import SCOPES

from .base import Stored
from .live import Held, unpacked
from .persistence import BATCH, FORKED, PersistentStore, Slot, key_of, name_of


T = TypeVar("T")
_READ: Final = "SELECT key, state, at_ms FROM {table} WHERE key = ? AND state <> ''"
_PAGE: Final = """
SELECT key, state, at_ms FROM {table} WHERE key >= ? AND key > ? AND state <> '' ORDER BY key LIMIT ?
"""
_DROP: Final = """
DELETE FROM {table} WHERE key IN (
  SELECT key FROM {table} WHERE at_ms < ? AND (? OR substr(key, 1, 1) <> ?) AND substr(key, 1, ?) = ? LIMIT ? {lock})
"""


class SqlStore(PersistentStore):
    """
    Rows of (key, state, at_ms). A key is a name of the database's own: bytes, or text.
    """

    _table = "states"
    _lock = ""
    """What a statement that picks rows says, so that two of them do not wait for each other."""
    _now = ""
    _mark = "?"
    """A value in a statement."""

    _name: Callable[[str], Any] = staticmethod(name_of)
    _key: Callable[[Any], str] = staticmethod(key_of)

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _now_ms(self) -> int: ...

    @abstractmethod
    def _begun(self, connection: Any, names: list[Any]) -> dict[Any, bytes | None]:
        """
        Begin a transaction in which nobody else changes the rows of *names*. Returns what they hold.
        """

    @abstractmethod
    def _commit(self, connection: Any, rows: list[tuple[Any, bytes]], slot: Slot) -> None: ...

    @abstractmethod
    def _roll_back(self, connection: Any) -> None: ...

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises, or is interrupted.
        """
        return self._ask(partial(self._change, keys, [self._name(key) for key in keys], step))

    def _change(self, keys: Sequence[str], names: list[Any], step: Callable[[list[SessionState]], T], slot: Slot) -> T:
        connection = self._connection(slot)
        try:
            kept = self._begun(connection, names)
            states = [self._state(key, kept.get(name)) for key, name in zip(keys, names, strict=True)]
            result = step([held.state for held in states])
            if slot not in self._slots:
                raise StoreError(FORKED.format(self.place))
            changed: list[tuple[Any, bytes]] = []
            for name, held in zip(names, states, strict=True):
                held.new = held.pack()
                if held.new != held.packed:
                    changed.append((name, held.new))
            self._commit(connection, changed, slot)
        except BaseException:
            if slot in self._slots:
                try:
                    self._roll_back(connection)
                except self._errors:
                    self._let_go(slot)
            raise
        for held in states:
            held.packed = held.new
        self._live.keep(keys, states)
        return result

    def _state(self, key: str, packed: bytes | None) -> Held:
        held = self._live.take(key)
        if held is not None and held.packed == packed:
            return held
        return Held(None, packed or b"", unpacked(key, packed, self.place))

    def _connection(self, slot: Slot) -> Any:
        if slot.link is None:
            slot.link = self._connect()
        return slot.link

    def _sql(self, text: str) -> str:
        for name in ("table", "lock", "now"):
            text = text.replace(f"{{{name}}}", getattr(self, f"_{name}"))
        return text.replace("?", self._mark)

    def _rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """
        Returns the rows of a statement; of one that has none, how many it changed.
        """

        def ask(slot: Slot) -> list[tuple[Any, ...]]:
            done = self._connection(slot).execute(self._sql(text), values)
            return done.fetchall() if done.description else [(done.rowcount,)]

        return self._ask(ask)

    def __len__(self) -> int:
        return int(self._rows("SELECT count(*) FROM {table} WHERE state <> ''")[0][0])

    def read(self, key: str) -> Stored | None:
        """
        See `Listed.read`.
        """
        return next((self._stored(*row) for row in self._rows(_READ, self._name(key))), None)

    def _page(self, prefix: str, last: str) -> Sequence[tuple[str, Stored | None]]:
        begins = self._name(prefix)
        rows = self._rows(_PAGE, begins, self._name(last), BATCH)
        return [(one.key, one) for row in rows if row[0].startswith(begins) for one in (self._stored(*row),)]

    def _stored(self, name: Any, packed: object, at_ms: int) -> Stored:
        # What is no block of bytes, somebody else wrote: as damaged as none.
        return Stored(self._key(name), packed if isinstance(packed, bytes) else b"", at_ms)

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._rows("DELETE FROM {table} WHERE key = ?", self._name(key))
        self._live.take(key)

    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        begins = self._name(prefix)
        values = self._now_ms() - idle_ms, scopes, self._name(SCOPES), len(begins), begins, BATCH
        while gone := self._rows(_DROP, *values)[0][0]:
            yield gone
