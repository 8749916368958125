"""
Rows: one call a row, whatever it was read from; the SQL that makes rows of records, and the view `calls` of rows.

Texts in here are portable: DuckDB and Spark run them unchanged, but for how a session's name becomes a number.
"""

from collections.abc import Collection
from typing import Final

from guardrails.core.records.record import SCHEMA_VERSION
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import INVALID

from .cells import DAY_MS, FOLDS, UNDATED


RECORD: Final = {
    "schema_version": "INTEGER",
    "event": "STRING",
    "session_id": "STRING",
    "run": "STRING",
    "n": "BIGINT",
    "ts_ms": "BIGINT",
    "duration_ms": "BIGINT",
    "elapsed_ms": "BIGINT",
    "tool": "STRING",
    "sig": "BIGINT",
    "status": "STRING",
    "error_type": "STRING",
    "retry_after_ms": "BIGINT",
    "mutates": "BOOLEAN",
    "retry_source": "STRING",
    "late": "BOOLEAN",
    "decision": "STRING",
    "code": "STRING",
    "ctx_logged": "INTEGER",
    "spec_version": "INTEGER",
}
"""
Columns of records that are read; others are not. `ts_ms` is when a call ended, `n` the order in which calls settled.

Records may be the library's lines (`event`: only `settle` lines and refusals for wrong arguments count), or one row for
each call that ran, without `event`. Of the latter `session_id`, `tool` and one of `n`, `seq`, `ts_ms` must be there.
"""
ROW: Final = {
    "session": "BIGINT",
    "n": "BIGINT",
    "tool": "STRING",
    "sig": "BIGINT",
    "error_type": "STRING",
    "started_ms": "BIGINT",
    "ended_ms": "BIGINT",
    "elapsed_ms": "BIGINT",
    "retry_after_ms": "BIGINT",
    "changes": "BOOLEAN",
    "source": "STRING",
    "ctx_logged": "INTEGER",
    "spec_version": "INTEGER",
}
"""Columns of rows; see `sql.COLUMNS`."""

LATEST_MS: Final = 7_258_118_400_000
"""The year 2200: later times, and negative ones, are unknown."""
REFUSED: Final = "validation.arguments"


def rows_of(columns: Collection[str], session: str) -> str:
    """
    Returns the rows of a view `input` of records that has *columns*; *session* is the expression of its session's
    number.

    Beside those of `ROW` there is `bad`: 0, 1 for a line that is no record, 2 for one of another schema version.
    """
    column = {name: name if name in columns else f"CAST(NULL AS {kind})" for name, kind in RECORD.items()}
    order = next((name for name in ("n", "seq", "ts_ms") if name in columns), "0")
    version = f"coalesce({column['schema_version']}, {SCHEMA_VERSION})"
    only = "TRUE"
    if "event" in columns:
        only = (
            f"(event = 'settle' AND NOT coalesce({column['late']}, FALSE)"
            f" OR event = 'call' AND {column['decision']} = 'deny' AND {column['code']} = '{REFUSED}')"
        )
    bad = f"CASE WHEN session_id IS NULL OR {order} IS NULL THEN 1 WHEN {version} <> {SCHEMA_VERSION} THEN 2 ELSE 0 END"
    started = f"CAST({column['ts_ms']} AS BIGINT) - coalesce({column['duration_ms']}, 0)"
    return f"""SELECT {session} AS session, CAST({order} AS BIGINT) AS n, CAST(tool AS STRING) AS tool,
  CAST({column["sig"]} AS BIGINT) AS sig,
  CASE WHEN {column["event"]} = 'call' THEN '{INVALID}'
    WHEN {column["error_type"]} IS NOT NULL THEN CAST({column["error_type"]} AS STRING)
    WHEN {column["status"]} = 'error' THEN 'other' END AS error_type,
  {_time(started)} AS started_ms,
  {_time(f"CAST({column['ts_ms']} AS BIGINT)")} AS ended_ms,
  CAST({column["elapsed_ms"]} AS BIGINT) AS elapsed_ms,
  CAST({column["retry_after_ms"]} AS BIGINT) AS retry_after_ms,
  coalesce({column["mutates"]}, TRUE) AS changes,
  CAST({column["retry_source"]} AS STRING) AS source,
  CAST({column["ctx_logged"]} AS INTEGER) AS ctx_logged,
  CAST({column["spec_version"]} AS INTEGER) AS spec_version,
  {bad} AS bad
FROM input
WHERE {bad} > 0 OR tool IS NOT NULL AND {only}"""  # noqa: S608  names and numbers of this library only


def calls_of(spec: FeatureSpec, folds_from: int) -> str:
    """
    Returns the view `calls` of a view `rows`: sessions are kept apart in groups from day *folds_from* on.
    """
    return f"""SELECT session, n, day, CAST(CASE WHEN day >= {folds_from} THEN session & {FOLDS - 1} ELSE {UNDATED} END
    AS INTEGER) AS fold, tool, sig, error_type, started_ms, ended_ms, elapsed_ms, retry_after_ms, changes, source,
  CASE WHEN spec_version = {spec.version} THEN ctx_logged END AS ctx_logged
FROM (
  SELECT *, CAST(CASE WHEN ended_ms IS NULL THEN {UNDATED} ELSE (ended_ms - ended_ms % {DAY_MS}) / {DAY_MS} END
    AS INTEGER) AS day
  FROM rows
) AS dated"""  # noqa: S608


def _time(expression: str) -> str:
    return f"CASE WHEN {expression} BETWEEN 0 AND {LATEST_MS} THEN {expression} END"
