"""
Sessions in a database of PostgreSQL, shared by processes of many machines.
"""

import os
import re
import threading
import time
import weakref

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Self, TypeVar

from guardrails.core.state import SessionState
from guardrails.core.values.errors import StoreError, needs
from guardrails.core.values.names import SCOPES
from guardrails.core.values.units import duration_ms

from .base import NESTED, Stored
from .live import LIVE, Held, Live, unpacked
from .places import shown_place


T = TypeVar("T")
CONNECTIONS: Final = 8
"""Connections of one process; further threads wait for one."""
BATCH: Final = 500
HUNG_MS: Final = 10_000
"""How long the server keeps the locks of a process that has gone silent in the middle of a step."""
PAUSE_S: Final = 0.05
_TABLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_MADE: Final = """
CREATE TABLE IF NOT EXISTS {table}
(key bytea PRIMARY KEY, state bytea NOT NULL DEFAULT '', at_ms bigint NOT NULL DEFAULT {now})
"""
_LOCKED: Final = "SELECT key, state FROM {table} WHERE key = ANY(%s) ORDER BY key FOR UPDATE"
_ADDED: Final = "INSERT INTO {table} (key) SELECT unnest(%s::bytea[]) ON CONFLICT DO NOTHING"
_WRITTEN: Final = """
UPDATE {table} t SET state = v.state, at_ms = {now} FROM unnest(%s::bytea[], %s::bytea[]) v (key, state)
WHERE t.key = v.key
"""
_READ: Final = "SELECT key, state, at_ms FROM {table} WHERE key = %s AND state <> ''"
_FROM: Final = """
SELECT key, state, at_ms FROM {table} WHERE key >= %s AND key > %s AND state <> '' ORDER BY key LIMIT %s
"""
_IDLE: Final = """
DELETE FROM {table} WHERE key IN (
  SELECT key FROM {table} WHERE at_ms < {now} - %s AND (%s OR substr(key, 1, 1) <> %s) AND substr(key, 1, %s) = %s
  LIMIT 500 FOR UPDATE SKIP LOCKED)
"""


class PostgresStore:
    """
    States in the database at *url* (`postgresql://USER:PASSWORD@HOST:PORT/NAME`), in *table*, which is made if it is
    missing. Safe in any number of threads, processes and machines.

    One `update` is one transaction: it locks the rows of its keys (`FOR UPDATE`), always in the same order, runs the step
    here, writes and commits. It waits up to *timeout* seconds for others and for the server, then raises StoreError.

    Raises StoreError if the database cannot be used, MissingExtra if the package `psycopg` is missing.
    """

    blocks: Final = True

    def __init__(self, url: str, *, table: str = "guardrails_states", timeout: float = 5.0, live: int = LIVE) -> None:
        if not _TABLE.fullmatch(table):
            raise StoreError(f"`{table}` is no name of a table: use small letters, digits and `_`")
        with needs("postgres", "a store in PostgreSQL"):
            import psycopg
        self._psycopg: Any = psycopg
        self._url = url
        self.place: Final = shown_place(url)
        self._table = table
        self._timeout = timeout
        self._live = Live(live)
        self._begin()
        self._ask(self._make)
        _stores.add(self)

    def _begin(self) -> None:
        self._free: list[Any] = []
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._own = threading.local()

    def _make(self, connection: Any) -> None:
        with connection.transaction():
            # Two that make the same table at once would not both succeed.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._table,))
            connection.execute(self._sql(_MADE))

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises.
        """
        names = [_name(key) for key in keys]
        return self._ask(lambda connection: self._change(connection, keys, names, step))

    def _change(
        self, connection: Any, keys: Sequence[str], names: list[bytes], step: Callable[[list[SessionState]], T]
    ) -> T:
        free = self._free
        try:
            found = self._lock(connection, names)
            if len(found) < len(names):
                # A row that is not there cannot be locked. It is made empty, which is as if it were not there.
                connection.execute("ROLLBACK")
                connection.execute(self._sql(_ADDED), (sorted(names),))
                found = self._lock(connection, names)
            taken = [self._take(key, found[name]) for key, name in zip(keys, names, strict=True)]
            result = step([held.state for held in taken])
            if self._free is not free:
                raise StoreError(f"this process was forked in the middle of an update of the store `{self.place}`")
            new = [
                (name, held, packed)
                for name, held in zip(names, taken, strict=True)
                if (packed := held.pack()) != held.packed
            ]
        except BaseException:
            if self._free is free and not connection.closed:
                with suppress(self._psycopg.Error):
                    connection.execute("ROLLBACK")
            raise
        try:
            with connection.pipeline():
                if new:
                    rows = [name for name, _, _ in new], [packed for _, _, packed in new]
                    connection.execute(self._sql(_WRITTEN), rows)
                connection.execute("COMMIT")
        except self._psycopg.OperationalError as error:
            raise _Unsure(error) from error
        for _, held, packed in new:
            held.packed = packed
        self._live.keep(keys, taken)
        return result

    def _lock(self, connection: Any, names: list[bytes]) -> dict[bytes, bytes]:
        # Begun and asked in one round trip.
        with connection.pipeline():
            connection.execute("BEGIN")
            found = connection.execute(self._sql(_LOCKED), (names,), binary=True)
        return dict(found.fetchall())

    def _take(self, key: str, packed: bytes) -> Held:
        held = self._live.take(key)
        if held is not None and held.packed == packed:
            return held
        return Held(None, packed, unpacked(key, packed, self.place) if packed else SessionState())

    def __len__(self) -> int:
        return int(self._rows("SELECT count(*) FROM {table} WHERE state <> ''")[0][0])

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        found = self._rows(_READ, _name(key))
        return _stored(*found[0]) if found else None

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`. They come in the order of their keys.
        """
        begins, last = _name(prefix), b""
        while found := self._rows(_FROM, begins, last, BATCH):
            for row in found:
                if not row[0].startswith(begins):
                    return
                yield _stored(*row)
            last = found[-1][0]

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._rows("DELETE FROM {table} WHERE key = %s", _name(key))
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
        Drop sessions, and *scopes* if asked, that have not changed for *idle* (seconds, or `30d`) by the server's clock
        and whose key begins with *prefix*. Returns the number of dropped states. The function *progress* is told now and
        then how many they are so far.

        See `SqliteStore.prune`. Raises ValueError if *idle* is no duration.
        """
        begins, dropped = _name(prefix), 0
        values = duration_ms(idle), bool(scopes), SCOPES.encode(), len(begins), begins
        while gone := self._ask(lambda connection: int(connection.execute(self._sql(_IDLE), values).rowcount)):
            dropped += gone
            if progress is not None:
                progress(dropped)
        return dropped

    def clock(self) -> float:
        """
        Returns seconds since 1970 by the server's clock, for `policy.session(..., clock=store.clock)`.
        """
        return int(self._rows("SELECT {now}")[0][0]) / 1000

    def _sql(self, text: str) -> str:
        return text.replace("{table}", self._table).replace("{now}", _NOW)

    def _rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        def ask(connection: Any) -> list[tuple[Any, ...]]:
            done = connection.execute(self._sql(text), values, binary=True)
            return done.fetchall() if done.description else []

        return self._ask(ask)

    def _ask(self, ask: Callable[[Any], T]) -> T:
        """
        Returns the answer that *ask* gets of a connection, asked again on another while that may help and there is time.
        """
        until = time.monotonic() + self._timeout
        while True:
            try:
                with self._connection(until) as connection:
                    return ask(connection)
            except self._psycopg.Error as error:
                if not _passing(error, self._psycopg) or time.monotonic() + PAUSE_S > until:
                    raise explained(error, self.place, self._timeout) from error
            except _Unsure as error:
                raise explained(error.error, self.place, self._timeout, unsure=True) from error
            time.sleep(PAUSE_S)

    @contextmanager
    def _connection(self, until: float) -> Iterator[Any]:
        own, places, free = self._own, self._places, self._free
        if getattr(own, "busy", False):
            raise RuntimeError(NESTED)
        if not places.acquire(timeout=max(0.0, until - time.monotonic())):
            raise StoreError(f"other threads used the store `{self.place}` for {self._timeout:g} s")
        own.busy = True
        connection = None
        try:
            connection = free.pop() if free else self._connect()
            yield connection
        except Exception:
            raise
        except BaseException:
            if connection is not None and self._free is free:
                connection.close()  # An answer may be on its way.
            raise
        finally:
            own.busy = False
            if self._free is free:
                if connection is not None and not connection.closed:
                    free.append(connection)
                places.release()

    def _connect(self) -> Any:
        ms = max(1, round(self._timeout * 1000))
        limits = f"-c lock_timeout={ms} -c statement_timeout={2 * ms} -c idle_in_transaction_session_timeout={HUNG_MS}"
        made = {"connect_timeout": max(2, round(self._timeout)), "tcp_user_timeout": 2 * ms, "options": limits}
        return self._psycopg.connect(self._url, autocommit=True, **made)

    def close(self) -> None:
        """
        Close the connections; the next use makes new ones.
        """
        if getattr(self._own, "busy", False):
            raise RuntimeError(NESTED)
        while self._free:
            self._free.pop().close()
        self._live.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        for connection in getattr(self, "_free", ()):
            connection.close()

    def __repr__(self) -> str:
        return f"PostgresStore({self.place!r}, table={self._table!r})"


class _Unsure(Exception):
    """
    A commit whose answer never came.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _name(key: str) -> bytes:
    # Whatever a program uses as a name, lone surrogates and NUL too.
    return key.encode("utf-8", "surrogatepass")


def _stored(name: bytes, packed: bytes, at_ms: int) -> Stored:
    return Stored(name.decode("utf-8", "surrogatepass"), packed, at_ms)


def _passing(error: Exception, psycopg: Any) -> bool:
    """
    Whether *error* may be over in a moment: a lost connection, a server that starts, two that wait for each other.
    """
    passing = psycopg.errors
    if isinstance(error, (passing.DeadlockDetected, passing.SerializationFailure, passing.CannotConnectNow)):
        return True
    code = getattr(error, "sqlstate", None) or ""
    lost = isinstance(error, psycopg.OperationalError) and (not code or code[:2] in ("08", "57", "25"))
    return lost and not isinstance(error, passing.QueryCanceled) and "authentication" not in str(error)


_MEANS: Final = {
    "55P03": "has rows that others locked for too long: end what holds them, or give it a longer `timeout`",
    "57014": "did not answer in time: see what it waits for, or give it a longer `timeout`",
    "42501": "does not let this user do it: GRANT SELECT, INSERT, UPDATE, DELETE on the table, and CREATE on its schema once",
    "25006": "is a replica, which takes no writes: give the address of the primary",
    "53100": "is full, its disk is: free some space; what was admitted before is kept",
    "53300": "has too many connections: raise its `max_connections`, or have a pooler before it",
    "42703": "has a table of another program by this name: use another `table`",
    "42804": "has a table of another program by this name: use another `table`",
    "42883": "has a table of another program by this name: use another `table`",
}
_UNREACHED: Final = "cannot be reached, or did not let this user in: see that it runs, its address, user and password"


def explained(error: Exception, place: str, timeout_s: float, *, unsure: bool = False) -> StoreError:
    """
    Returns the error to raise for *error* at the store *place*: its meaning, and its remedy. If *unsure*, it is not
    known whether the step was kept.
    """
    code = getattr(error, "sqlstate", None) or ""
    said = _MEANS.get(code) or (_UNREACHED if not code or code[:2] in ("08", "28", "57") else "cannot be used")
    if unsure:
        said += "; the step that was under way may have been kept: then more is charged than was used, never less"
    return StoreError(f"the store `{place}` {said} ({timeout_s:g} s; {str(error).strip()})")


_stores: "weakref.WeakSet[PostgresStore]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        for connection in store._free:  # noqa: SLF001
            with suppress(Exception):
                # What a connection says when it is closed would end that of the parent.
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, connection.fileno())
                os.close(nowhere)
                connection.close()
        store._begin()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
