"""
The common part of stores of files, databases and servers: turns of threads, tries, faults in words, forks; and that of tables.
"""

import re
import threading
import time

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Self, TypeVar

from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable, StoreError
from guardrails.core.values.names import SCOPES, whose
from guardrails.core.values.units import duration_ms

from . import NESTED, Listed, Stored, When, at_forks


T = TypeVar("T")
LIVE: Final = 1_000
"""Sessions whose state is kept unpacked too, for when the store still says the same."""
BATCH: Final = 500
"""States that are read, or dropped, in one go, so that calls of others get in between."""
MEANS: Final = {
    "busy": "was locked by others for {:g} s: end what holds it, or give the store a longer `timeout`",
    "away": "cannot be reached, or did not answer within {:g} s: see that it runs, and its address",
    "login": "did not let this user in: correct user and password in its URL",
    "forbidden": "does not let this user do it: give it the rights that docs/stores.md names",
    "read-only": "is read-only: give this process the right to write it and its folder",
    "folder": "cannot be opened: its folder must be there, and this process must be allowed to write it",
    "replica": "is a replica, which takes no writes: give the address of the primary",
    "full": "is full: free some space, or `prune` sessions that are over; what was admitted before is kept",
    "disk": "cannot read or write its disk: see its log, or the system's",
    "damaged": (
        "is damaged, or no database: put a copy of it back, or move it away together with its `-wal` and `-shm` files, "
        "which starts all sessions and scopes afresh"
    ),
    "foreign": "holds what another program wrote: use another file, `table` or `namespace`",
    "": "cannot be used",
}
"""By its kind, the meaning of a fault and its remedy; seconds stand for how long it was tried."""
PASSING: Final = frozenset({"busy", "away", "replica"})
"""Kinds of faults that may be over in a moment."""
FORKED: Final = "this process was forked in the middle of an update of the store `{}`: start it by spawn, or not from inside of a guard"
_UNSURE: Final = "; the step that was under way may have been kept: then more is charged than was used, never less"


@dataclass(slots=True, eq=False)
class Slot:
    """
    A place in which one thread at a time asks the store, by a link of its own: a connection, or none.
    """

    # Reentrant, so that a step which asks the store finds itself out instead of waiting for itself.
    lock: Any = field(default_factory=threading.RLock)
    busy: bool = False
    link: Any = None
    unsure: bool = False
    """Whether a commit is under way of which nobody knows yet whether it took place."""
    until: float = 0.0
    """The time at which no try is made any more."""


class PersistentStore(Listed):
    """
    A store that outlives its processes.
    """

    blocks: Final = True
    _places: ClassVar[int] = 8
    """Threads that ask at once; others wait for them."""
    _pause_s: ClassVar[float] = 0.02
    """Between two tries, in seconds."""
    _resends: ClassVar[bool] = False
    """Whether a commit may be sent again whose answer was lost."""
    _kinds: ClassVar[Mapping[str, str]]
    """See `kind_of`; the kinds are those of `MEANS`."""
    _errors: type[Exception]
    """Of the library that it uses."""

    def __init__(self, place: str, timeout: float, live: int) -> None:
        self.place: Final = place
        self._timeout = timeout
        self._most = live
        self._live: dict[str, Any] = {}
        self._left: list[Any] = []
        """Links of a process that was forked. To close them here would end them there."""
        self._begin()
        at_forks(self)

    def _begin(self) -> None:
        self._slots = [Slot() for _ in range(self._places)]

    @abstractmethod
    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        """
        Drop what was idle, in parts. Returns how many states each part had.
        """

    def prune(self, idle: float | str, *, scopes: bool = False, prefix: str = "") -> int:
        """
        Drop sessions, and *scopes* if asked, that have not changed for *idle* (seconds, or `30d`) and whose key begins
        with *prefix*. Returns the number of dropped states. They are dropped in parts, so that calls get in between.

        Call it now and then, in any process. The time must be longer than any of your sessions pauses between two calls.
        A scope that is dropped starts afresh, so the scopes of a budget that never ends must stay. Raises ValueError if
        *idle* is no duration.
        """
        return sum(self._drop(duration_ms(idle), prefix, scopes=scopes))

    def read(self, key: str) -> Stored | None:
        """
        See `Listed.read`.
        """
        # Of the states whose key begins with it, its own comes first.
        first = next(self.entries(key), None)
        return first if first is not None and first.key == key else None

    # Turns and tries

    def _ask(self, ask: Callable[[Slot], T]) -> T:
        """
        Returns the answer that *ask* gets, asked again while that may help and there is time.
        """
        return self._in_turn(partial(self._tried, ask))

    def _in_turn(self, work: Callable[[Slot], T]) -> T:
        """
        Returns the result of *work* in the slot of this thread, alone there.
        """
        until = time.monotonic() + self._timeout
        slot = self._slots[threading.get_native_id() % self._places]
        with slot.lock:
            if slot.busy:
                raise RuntimeError(NESTED)
            slot.busy, slot.until = True, until
            try:
                return work(slot)
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._let_go(slot)  # An answer may be on its way.
                raise
            finally:
                slot.busy = slot.unsure = False

    def _tried(self, ask: Callable[[Slot], T], slot: Slot) -> T:
        while True:
            try:
                return ask(slot)
            except self._errors as error:
                kind = kind_of(error, self._kinds)
                # What was answered with a refusal was not kept.
                unsure = slot.unsure and kind == "away"
                if kind == "away":
                    self._let_go(slot)
                late = time.monotonic() + self._pause_s > slot.until
                if late or kind not in PASSING or (unsure and not self._resends):
                    raise explained(error, kind, self.place, self._timeout, unsure=unsure) from error
                time.sleep(self._pause_s)

    def _let_go(self, slot: Slot) -> None:
        link, slot.link = slot.link, None
        if link is not None:
            with suppress(self._errors):
                link.close()

    # States that are kept unpacked

    def _keep(self, keys: Sequence[str], states: Iterable[Any]) -> None:
        """
        Have *states* as they are committed now. Whoever takes one out of `_live` lets go of it: what is half changed is not found.
        """
        live = self._live
        live.update(zip(keys, states, strict=True))
        if len(live) > self._most:
            # A copy of the keys is made in one go, so that other threads may keep and take meanwhile.
            for key in list(live)[: len(live) - self._most]:
                live.pop(key, None)

    def close(self) -> None:
        """
        Let go of the file, or of the connections; the next use opens it again.
        """
        self._live.clear()
        for slot in self._slots:
            with slot.lock:
                if slot.busy:
                    raise RuntimeError(NESTED)
                self._let_go(slot)

    def _at_fork(self, when: When) -> None:
        if when == "child":
            self._left += [slot.link for slot in self._slots if slot.link is not None]
            self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            for slot in self._slots:
                self._let_go(slot)
        except Exception:  # noqa: S110  at the end of a program what closes a link may be gone
            pass

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"


def kind_of(error: Exception, kinds: Mapping[str, str]) -> str:
    """
    Returns the kind of *error*, by the first of the patterns of *kinds* that is in the names of its classes or its words.
    """
    words = " ".join([*(cls.__name__ for cls in type(error).__mro__), str(error)])
    return next((kind for kind, pattern in kinds.items() if re.search(pattern, words)), "")


def explained(error: Exception, kind: str, place: str, timeout_s: float, *, unsure: bool = False) -> StoreError:
    """
    Returns the error to raise for *error* of this *kind* at the store *place*. If *unsure*, it is not known whether the step was kept.
    """
    meaning = MEANS[kind].format(timeout_s)
    return StoreError(f"the store `{place}` {meaning}{_UNSURE if unsure else ''} ({str(error).strip()})")


def unpacked(key: str, packed: bytes | None, store: str) -> SessionState:
    """
    Returns the state of *key* in *store*, a new one for None. Raises StateUnreadable, which names both.
    """
    try:
        return SessionState() if packed is None else unpack(packed)
    except StateUnreadable as error:
        raise StateUnreadable(error.reason, whose(key), store) from error


def name_of(key: str) -> bytes:
    """
    Returns *key* as bytes, whatever a program uses as a name: NUL and lone surrogates too.
    """
    return key.encode("utf-8", "surrogatepass")


def key_of(name: bytes | str) -> str:
    """
    Returns the key that a store names so: as text, or as `name_of` made bytes of it.
    """
    return name if isinstance(name, str) else name.decode("utf-8", "surrogatepass")


# Tables: one update is one transaction


_PAGE: Final = "SELECT key, state, at_ms FROM {table} WHERE state <> '' AND key >= ? AND key > ? ORDER BY key LIMIT ?"
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
        return text.format(table=self._table, lock=self._lock, now=self._now).replace("?", self._mark)

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

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Listed.entries`. They come in the order of their keys.
        """
        begins, last = self._name(prefix), self._name("")
        while rows := self._rows(_PAGE, begins, last, BATCH):
            for last, packed, at_ms in rows:
                if not last.startswith(begins):
                    return
                # What is no block of bytes, somebody else wrote: as damaged as none.
                yield Stored(key_of(last), packed if isinstance(packed, bytes) else b"", at_ms)

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
