"""
The offline extraction as one SQL text, rendered from a feature specification.

It runs unchanged on DuckDB and on Spark, over a view `calls` with the columns of `COLUMNS`. Nothing in it comes from
data: edges and windows are integers of a checked specification, the rest is written here.
"""

from collections.abc import Iterable
from typing import Final

from ..retries.factors import ACTION
from ..retries.labels import INVALID, NO_ACTION
from ..retries.spec import FeatureSpec
from ..types import ERROR_TYPES
from .cells import SOURCES
from .expressions import (
    KINDS,
    SHARE,
    code,
    family,
    in_time,
    kind,
    last_edge,
    named,
    numbered,
    position,
)


COLUMNS: Final = {
    "session": "BIGINT",  # a life of a session, as a number
    "n": "BIGINT",  # ascends in the order in which its calls settled
    "day": "INTEGER",  # see `Cell`
    "fold": "INTEGER",
    "tool": "STRING",
    "sig": "BIGINT",  # NULL: cannot be signed; a signature is of one tool only
    "error_type": "STRING",  # NULL: it worked; validation_error: it did not run
    "started_ms": "BIGINT",
    "ended_ms": "BIGINT",
    "elapsed_ms": "BIGINT",  # age of the session when the call ended
    "retry_after_ms": "BIGINT",
    "changes": "BOOLEAN",  # it may have changed something
    "source": "STRING",  # who caused it, where it is a retry
    "ctx_logged": "INTEGER",  # what serving computed by this specification
}
"""Columns of the view `calls`, with their types as DuckDB names them."""
OTHER: Final = ERROR_TYPES.index("other") + 1


def extraction(spec: FeatureSpec) -> str:
    """
    The query whose rows are the cells of the view `calls`, unordered; its columns are the fields of `Cell`.

    An error type outside the closed list counts as `other`. Three sorts are all that costs time: what they carry is
    packed (position and kind of a call in one number), and the third is only of signatures that failed.
    """
    # Nothing of it is data: see above.
    return f"""WITH settled AS (
  SELECT session, day, fold, tool, sig, err, started_ms, ended_ms, retry_after_ms, ctx_logged, src, worked_now, worked,
    pos, CAST(pos AS BIGINT) * {KINDS} + err AS mark,
    CASE WHEN err > 0 THEN own_code + {code(spec, ("prev",))} ELSE 0 END AS own_code
  FROM (
    SELECT *,
      CAST(row_number() OVER (PARTITION BY session ORDER BY n) AS INTEGER) AS pos,
      CAST(sum(worked_now) OVER (PARTITION BY session ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        AS INTEGER) AS worked,
      lag(CASE WHEN err = 0 THEN 0 ELSE 1 END) OVER (PARTITION BY session ORDER BY n) AS prev
    FROM (
      SELECT session, n, day, fold, tool, sig, started_ms, ended_ms, retry_after_ms, ctx_logged,
        {numbered("source", SOURCES, 0)} AS src,
        {numbered("error_type", ERROR_TYPES, OTHER)} AS err,
        CASE WHEN error_type IS NULL AND changes THEN 1 ELSE 0 END AS worked_now,
        CASE WHEN error_type IS NULL THEN 0 ELSE {code(spec, ("elapsed",))} END AS own_code
      FROM calls
      WHERE error_type IS NULL OR error_type <> '{INVALID}'
    ) AS numbered
  ) AS placed
), by_tool AS (
  SELECT *,
{_indented(_tool_columns(spec))}
  FROM settled
), of_tool AS (
  SELECT *, {position("next")} AS next_pos, {kind("next")} AS next_err,
    CASE WHEN due IS NULL OR ended_ms IS NULL THEN retry_after_ms
      WHEN due > ended_ms OR retry_after_ms IS NOT NULL THEN due - ended_ms END AS ra{_run_columns(spec)}
  FROM by_tool
), packed AS (
  SELECT session, day, fold, tool, sig, err, started_ms, ended_ms, ra, ctx_logged, src,
    worked - worked_now AS worked_before, worked, pos, mark, tool_row,
    CASE WHEN err > 0 AND {in_time(spec, "next")} AND (sig IS NULL OR next_sig IS NULL OR next_sig <> sig)
      THEN CASE WHEN next_err = 0 THEN 2 ELSE 1 END ELSE 0 END AS changed,
    CASE WHEN err > 0 THEN own_code + {code(spec, ("fail_share", "ra", "tool_run"))} ELSE 0 END AS tool_code
  FROM of_tool
), by_signature AS (
  SELECT *,
{_indented(_signature_columns(spec))}
  FROM packed
  WHERE err > 0 OR sig IN (SELECT sig FROM calls WHERE error_type IS NOT NULL AND sig IS NOT NULL)
), unpacked AS (
  SELECT *, {position("again")} AS again_pos, {kind("again")} AS again_err, {family("err")} AS kin
  FROM by_signature
  WHERE err > 0
), of_family AS (
  SELECT *, tool_row - row_number() OVER (PARTITION BY session, tool, kin ORDER BY pos) AS run
  FROM unpacked
), of_run AS (
  SELECT *,
    CAST(count(*) OVER ({_run(spec)}) AS INTEGER) - 1 AS err_run,
    first_value(ended_ms) OVER ({_run(spec)}) AS first_ended
  FROM of_family
), failures AS (
  SELECT *, {in_time(spec, "again")} AS repeated, again_started - ended_ms AS delay,
    CASE WHEN ended_ms < first_ended THEN 0 ELSE ended_ms - first_ended END AS since
  FROM of_run
), coded AS (
  SELECT day, fold, tool, err, ctx_logged, repeated, changed,
    tool_code + {code(spec, ("attempt", "err_run", "since"))} AS context,
    CASE WHEN repeated THEN {code(spec, ACTION)} ELSE {NO_ACTION} END AS action,
    CASE WHEN repeated THEN again_src ELSE -1 END AS src,
    CASE WHEN repeated AND again_err = 0 THEN 1 ELSE 0 END AS worked_again
  FROM failures
), {_refused(spec)}
SELECT day, fold, tool, {named("err", ERROR_TYPES, 1)} AS error_type, context, action,
  {named("src", SOURCES, 0)} AS source,
  CAST(sum(CASE WHEN repeated THEN 1 ELSE 0 END) AS DOUBLE) AS n,
  CAST(sum(worked_again) AS DOUBLE) AS s,
  CAST(sum(CASE WHEN repeated THEN 0 ELSE 1 END) AS DOUBLE) AS unlabelled,
  CAST(sum(CASE WHEN changed > 0 THEN 1 ELSE 0 END) AS DOUBLE) AS corrected_n,
  CAST(sum(CASE WHEN changed > 1 THEN 1 ELSE 0 END) AS DOUBLE) AS corrected,
  CAST(count(ctx_logged) AS DOUBLE) AS logged,
  CAST(sum(CASE WHEN ctx_logged <> context THEN 1 ELSE 0 END) AS DOUBLE) AS skewed
FROM coded
GROUP BY day, fold, tool, err, context, action, src
UNION ALL
SELECT day, fold, tool, '{INVALID}', 0, {NO_ACTION}, '', CAST(0 AS DOUBLE), CAST(0 AS DOUBLE),
  CAST(count(*) AS DOUBLE),
  CAST(sum(CASE WHEN changed THEN 1 ELSE 0 END) AS DOUBLE),
  CAST(sum(CASE WHEN changed AND coalesce(next_error, '') NOT IN ('{INVALID}', 'validation') THEN 1 ELSE 0 END)
    AS DOUBLE),
  CAST(0 AS DOUBLE), CAST(0 AS DOUBLE)
FROM refused
GROUP BY day, fold, tool
"""  # noqa: S608


def _refused(spec: FeatureSpec) -> str:
    """
    Calls that did not run because their arguments did not fit, with what came after them.
    """
    return f"""refused AS (
  SELECT day, fold, tool, next_error,
    {in_time(spec, "next")} AND (sig IS NULL OR next_sig IS NULL OR next_sig <> sig) AS changed
  FROM (
    SELECT *,
      lead(sig) OVER (PARTITION BY session, tool ORDER BY n) AS next_sig,
      lead(error_type) OVER (PARTITION BY session, tool ORDER BY n) AS next_error,
      lead(started_ms) OVER (PARTITION BY session, tool ORDER BY n) AS next_started,
      lead(pos) OVER (PARTITION BY session, tool ORDER BY n) AS next_pos
    FROM (
      SELECT session, n, day, fold, tool, sig, error_type, started_ms, ended_ms,
        CAST(sum(CASE WHEN error_type = '{INVALID}' THEN 0 ELSE 1 END)
          OVER (PARTITION BY session ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS INTEGER) AS pos
      FROM calls
      WHERE session IN (SELECT session FROM calls WHERE error_type = '{INVALID}')
    ) AS placed
  ) AS followed
  WHERE error_type = '{INVALID}'
)"""  # noqa: S608


def _run(spec: FeatureSpec) -> str:
    """
    The failures of a run: what a tool's calls and those of one kind are numbered apart by is the same for all of them.
    """
    # Numbered among the failures only, of which there are fewer than calls.
    return f"PARTITION BY session, tool, kin, run ORDER BY pos RANGE BETWEEN {spec.lookback} PRECEDING AND CURRENT ROW"


def _tool_columns(spec: FeatureSpec) -> list[str]:
    window = "OVER (PARTITION BY session, tool ORDER BY pos)"
    columns = [f"lag(mark, {back}) {window} AS mark_{back}" for back in range(1, last_edge(spec, "tool_run") + 1)]
    columns.append(f"row_number() {window} AS tool_row")
    if "fail_share" in spec.by_name:
        # Calls and failures in one sum; the frame holds the call itself, since an empty one would have no sum.
        frame = f"ORDER BY pos RANGE BETWEEN {spec.lookback} PRECEDING AND CURRENT ROW"
        one = f"{SHARE} + CASE WHEN err > 0 THEN 1 ELSE 0 END"
        columns.append(f"CAST(sum({one}) OVER (PARTITION BY session, tool {frame}) - ({one}) AS INTEGER) AS share")
    so_far = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return [
        *columns,
        f"max(CASE WHEN err > 0 THEN ended_ms + retry_after_ms END) {window[:-1]} {so_far}) AS due",
        f"lead(mark) {window} AS next_mark",
        f"lead(sig) {window} AS next_sig",
        f"lead(started_ms) {window} AS next_started",
    ]


def _signature_columns(spec: FeatureSpec) -> list[str]:
    window = "OVER (PARTITION BY session, sig ORDER BY pos)"
    return [
        *(f"lag(pos, {back}) {window} AS attempt_{back}" for back in range(1, last_edge(spec, "attempt") + 1)),
        f"lead(mark) {window} AS again_mark",
        f"lead(started_ms) {window} AS again_started",
        f"lead(src) {window} AS again_src",
        # The call itself may have worked and changed something: what counts is what worked before it.
        f"lead(worked_before) {window} AS again_worked",
    ]


def _run_columns(spec: FeatureSpec) -> str:
    return "".join(f", {position(str(back))} AS pos_{back}" for back in range(1, last_edge(spec, "tool_run") + 1))


def _indented(columns: Iterable[str]) -> str:
    return ",\n".join(f"    {column}" for column in columns)
