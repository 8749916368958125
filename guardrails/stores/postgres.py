"""
Sessions in a database of PostgreSQL, shared by processes of many machines.
"""

import os
import re

from contextlib import suppress
from typing import Any, Final

from guardrails.core.values.errors import StoreError, needs

from .base import When
from .live import LIVE
from .persistence import Slot
from .places import shown_place
from .sql import SqlStore


HUNG_MS: Final = 10_000
"""How long the server keeps the locks of a process that has gone silent in the middle of a step."""
_TABLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_MADE: Final = """
CREATE TABLE IF NOT EXISTS {table}
(key bytea PRIMARY KEY, state bytea NOT NULL DEFAULT '', at_ms bigint NOT NULL DEFAULT {now})
"""
_LOCKED: Final = "SELECT key, state FROM {table} WHERE key = ANY(?) ORDER BY key FOR UPDATE"
_ADDED: Final = "INSERT INTO {table} (key) SELECT unnest(?::bytea[]) ON CONFLICT DO NOTHING"
_WRITTEN: Final = """
UPDATE {table} t SET state = v.state, at_ms = {now} FROM unnest(?::bytea[], ?::bytea[]) v (key, state) WHERE t.key = v.key
"""
_KINDS: Final = {
    **dict.fromkeys(("55P03", "57014"), "busy"),
    **dict.fromkeys(("40001", "40P01", "57P03", "53300"), "starting"),
    **dict.fromkeys(("28000", "28P01"), "login"),
    "42501": "forbidden",
    "25006": "replica",
    "53100": "full",
    **dict.fromkeys(("42703", "42804", "42883"), "foreign"),
}
"""By the state that SQL gives an error."""


class PostgresStore(SqlStore):
    """
    States in the database at *url* (`postgresql://USER:PASSWORD@HOST:PORT/NAME`), in *table*, which is made if it is
    missing. Safe in any number of threads, processes and machines.

    One `update` is one transaction: it locks the rows of its keys (`FOR UPDATE`), always in the same order, runs the step
    here, writes and commits. It waits up to *timeout* seconds for others and for the server, then raises StoreError.

    Raises StoreError if the database cannot be used, MissingExtra if the package `psycopg` is missing.
    """

    _mark = "%s"
    _lock = "FOR UPDATE SKIP LOCKED"
    _now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    def __init__(self, url: str, *, table: str = "guardrails_states", timeout: float = 5.0, live: int = LIVE) -> None:
        if not _TABLE.fullmatch(table):
            raise StoreError(f"`{table}` is no name of a table: use small letters, digits and `_`")
        with needs("postgres", "a store in PostgreSQL"):
            import psycopg
        self._psycopg: Any = psycopg
        self._errors = psycopg.Error
        self._url = url
        self._table = table
        super().__init__(shown_place(url), timeout, live)
        self._ask(self._make)

    def _make(self, slot: Slot) -> None:
        connection = self._connection(slot)
        with connection.transaction():
            # Two that make the same table at once would not both succeed.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._table,))
            connection.execute(self._sql(_MADE))

    def _connect(self) -> Any:
        ms = max(1, round(self._timeout * 1000))
        limits = f"-c lock_timeout={ms} -c statement_timeout={2 * ms} -c idle_in_transaction_session_timeout={HUNG_MS}"
        made: dict[str, Any] = {"connect_timeout": max(2, round(self._timeout)), "tcp_user_timeout": 2 * ms}
        return self._psycopg.connect(self._url, autocommit=True, options=limits, **made)

    def _connection(self, slot: Slot) -> Any:
        if slot.link is not None and slot.link.closed:
            slot.link = None
        return super()._connection(slot)

    def _begun(self, connection: Any, names: list[bytes]) -> dict[bytes, bytes | None]:
        kept = self._locked(connection, names)
        if len(kept) < len(names):
            # A row that is not there cannot be locked. It is made empty, which is as if it were not there.
            connection.execute("ROLLBACK")
            connection.execute(self._sql(_ADDED), (sorted(names),))
            kept = self._locked(connection, names)
        return {name: packed or None for name, packed in kept.items()}

    def _locked(self, connection: Any, names: list[bytes]) -> dict[bytes, bytes]:
        # Begun and asked in one round trip.
        with connection.pipeline():
            connection.execute("BEGIN")
            rows = connection.execute(self._sql(_LOCKED), (names,), binary=True)
        return dict(rows.fetchall())

    def _commit(self, connection: Any, rows: list[tuple[bytes, bytes]], slot: Slot) -> None:
        slot.unsure = True
        with connection.pipeline():
            if rows:
                connection.execute(self._sql(_WRITTEN), ([name for name, _ in rows], [packed for _, packed in rows]))
            connection.execute("COMMIT")
        slot.unsure = False

    def _roll_back(self, connection: Any) -> None:
        if not connection.closed:
            connection.execute("ROLLBACK")

    def _now_ms(self) -> int:
        return int(self._rows("SELECT {now}")[0][0])

    def clock(self) -> float:
        """
        Returns seconds since 1970 by the server's clock, for `policy.session(..., clock=store.clock)`.
        """
        return self._now_ms() / 1000

    def _kind(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None) or ""
        if state in _KINDS or not isinstance(error, self._psycopg.OperationalError):
            return _KINDS.get(state, "")
        if "authentication" in str(error):
            return "login"
        return "away" if not state or state[:2] in ("08", "57", "25") else ""

    def _at_fork(self, when: When) -> None:
        for slot in self._slots if when == "child" else ():
            if slot.link is not None:
                with suppress(Exception):
                    # What a connection says when it is closed would end that of the parent.
                    nowhere = os.open(os.devnull, os.O_RDWR)
                    os.dup2(nowhere, slot.link.fileno())
                    os.close(nowhere)
                    slot.link.close()
        super()._at_fork(when)
