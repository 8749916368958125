"""
Sessions in a database of PostgreSQL, shared by processes of many machines.
"""

import re

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from guardrails.core.values.errors import StoreError, needs

from .persistence import LIVE, Slot, SqlStore
from .places import shown_place


HUNG_MS: Final = 10_000
"""How long the server keeps the locks of a process that has gone silent in the middle of a step."""
_TABLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_MADE: Final = """
CREATE TABLE IF NOT EXISTS {table}
(key bytea PRIMARY KEY, state bytea NOT NULL DEFAULT '', at_ms bigint NOT NULL DEFAULT {now})
"""
_ADDED: Final = "INSERT INTO {table} (key) SELECT unnest(?::bytea[]) ON CONFLICT DO NOTHING"
_LOCKED: Final = "SELECT key, state FROM {table} WHERE key = ANY(?) ORDER BY key FOR UPDATE"
_WRITTEN: Final = """
UPDATE {table} t SET state = v.state, at_ms = {now} FROM unnest(?::bytea[], ?::bytea[]) v (key, state) WHERE t.key = v.key
"""


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
    _kinds: ClassVar[Mapping[str, str]] = {
        "busy": "LockNotAvailable|QueryCanceled|SerializationFailure|DeadlockDetected",
        "login": "InvalidAuthorization|InvalidPassword|authentication",
        "forbidden": "InsufficientPrivilege",
        "replica": "ReadOnlySqlTransaction",
        "full": "DiskFull",
        "foreign": "UndefinedColumn|DatatypeMismatch|UndefinedFunction",
        "away": "OperationalError|IdleInTransactionSessionTimeout",
    }

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

    def _begun(self, connection: Any, names: list[bytes]) -> dict[bytes, bytes | None]:
        # One round trip. A row that is not there cannot be locked: it is made empty, which is as if it were not there.
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute(self._sql(_ADDED), (sorted(names),))
            rows = connection.execute(self._sql(_LOCKED), (names,), binary=True)
        return {name: packed or None for name, packed in rows.fetchall()}

    def _commit(self, connection: Any, rows: list[tuple[bytes, bytes]], slot: Slot) -> None:
        slot.unsure = True
        with connection.pipeline():
            if rows:
                connection.execute(self._sql(_WRITTEN), ([name for name, _ in rows], [packed for _, packed in rows]))
            connection.execute("COMMIT")
        slot.unsure = False

    def _now_ms(self) -> int:
        return int(self._rows("SELECT {now}")[0][0])

    def clock(self) -> float:
        """
        Returns seconds since 1970 by the server's clock, for `policy.session(..., clock=store.clock)`.
        """
        return self._now_ms() / 1000
