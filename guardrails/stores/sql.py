"""
Stores in a table of a database: one update is one transaction.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from guardrails.core.packing import pack
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StoreError
from guardrails.core.values.names import SCOPES

from . import Stored
from .persistence import BATCH, FORKED, PersistentStore, Slot, key_of, name_of, unpacked


T = TypeVar("T")
_FOUND: Final = "SELECT key, state, at_ms FROM {table} WHERE state <> '' AND"
_READ: Final = f"{_FOUND} key = ?"
_PAGE: Final = f"{_FOUND} key >= ? AND key > ? ORDER BY key LIMIT ?"
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

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises, or is interrupted.
        """
        return self._ask(partial(self._change, keys, [self._name(key) for key in keys], step))

    def _change(self, keys: Sequence[str], names: list[Any], step: Callable[[list[SessionState]], T], slot: Slot) -> T:
        connection = self._connection(slot)
        try:
            old = self._begun(connection, names)
            states = [self._state(key, old.get(name)) for key, name in zip(keys, names, strict=True)]
            result = step(states)
            if slot not in self._slots:
                raise StoreError(FORKED.format(self.place))
            packed = [pack(state) for state in states]
            rows = [(name, new) for name, new in zip(names, packed, strict=True) if new != old.get(name)]
            self._commit(connection, rows, slot)
        except BaseException:
            if slot in self._slots:
                try:
                    connection.rollback()
                except self._errors:
                    self._let_go(slot)
            raise
        self._keep(keys, zip(packed, states, strict=True))
        return result

    def _state(self, key: str, packed: bytes | None) -> SessionState:
        held = self._live.pop(key, None)
        if held is not None and held[0] == packed:
            state: SessionState = held[1]
            return state
        return unpacked(key, packed, self.place)

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

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Listed.entries`. They come in the order of their keys.
        """
        begins, last = self._name(prefix), self._name("")
        while rows := self._rows(_PAGE, begins, last, BATCH):
            for row in rows:
                if not row[0].startswith(begins):
                    return
                yield self._stored(*row)
            last = rows[-1][0]

    def _stored(self, name: Any, packed: object, at_ms: int) -> Stored:
        # What is no block of bytes, somebody else wrote: as damaged as none.
        return Stored(self._key(name), packed if isinstance(packed, bytes) else b"", at_ms)

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._rows("DELETE FROM {table} WHERE key = ?", self._name(key))
        self._live.pop(key, None)

    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        begins = self._name(prefix)
        values = self._now_ms() - idle_ms, scopes, self._name(SCOPES), len(begins), begins, BATCH
        while gone := self._rows(_DROP, *values)[0][0]:
            yield gone
