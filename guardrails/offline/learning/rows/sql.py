"""
The offline extraction as one SQL text, rendered from a feature specification.

It runs unchanged on DuckDB and on Spark, over a view `calls` with the columns of `COLUMNS`. Nothing in it comes from
data: edges and windows are integers of a checked specification, the rest is written here.
"""

from collections.abc import Iterable
from typing import Final

from guardrails.core.retries.factors import ACTION
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import ERROR_TYPES, INVALID
from guardrails.offline.learning.labels import NO_ACTION

from .cells import SOURCES
from .expressions import (
    CAUSED,
    CHANGED,
    CODES,
    DAY,
    HALF,
    PLACE,
    SHARE,
    TOOL_BITS,
    code,
    family,
    in_order,
    in_time,
    kind,
    levels,
    looking_back,
    named,
    numbered,
    place,
    run_edges,
)


COLUMNS: Final = {
    "session": "BIGINT",  # a life of a session, as a number
    "n": "BIGINT",  # ascends in the order in which its calls settled
    "day": "INTEGER",  # see `Cell`; below 2^17
    "fold": "INTEGER",
    "tool": "STRING",
    "sig": "BIGINT",  # NULL: cannot be signed; a signature is of one tool only
    "error_type": "STRING",  # NULL: it worked; validation_error: it did not run
    "started_ms": "BIGINT",
    "ended_ms": "BIGINT",  # from 0 to 2^43, as is started_ms
    "elapsed_ms": "BIGINT",  # age of the session when the call ended
    "retry_after_ms": "BIGINT",
    "changes": "BOOLEAN",  # it may have changed something
    "source": "STRING",  # who caused it, where it is a retry
    "ctx_logged": "INTEGER",  # what serving computed by this specification
}
"""Columns of the view `calls`, with their types as DuckDB names them."""
OTHER: Final = ERROR_TYPES.index("other") + 1
_TIES: Final = ", ".join(f"{name} NULLS LAST" for name in ("started_ms", "ended_ms", "tool", "sig"))
"""What decides between calls of one number, such as those that ended at one time: engines and runs would choose at random."""
_BY_SESSION: Final = (
    f"PARTITION BY session ORDER BY n, {_TIES}, what, own, retry_after_ms NULLS LAST, ctx_logged NULLS LAST"
)
_TOOL_BY_TOOL: Final = "PARTITION BY session ORDER BY mark"
"""The calls of one tool after those of another: few large partitions cost less than many small ones."""
_BY_TOOL: Final = "PARTITION BY session, tool ORDER BY mark"
_BY_SIGNATURE: Final = f"PARTITION BY session, sig ORDER BY {in_order('mark')}"
_SO_FAR: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def extraction(spec: FeatureSpec) -> str:
    """
    Returns the query whose rows are the cells of the view `calls`, unordered; its columns are the fields of `Cell`.

    An error type outside the closed list counts as `other`. Four sorts cost the time, by the columns they carry more
    than by their keys. Tools therefore go by number, and columns that fit are packed into one number (`PLACE`, `DAY`).
    The last two sorts are only of the signatures that failed, and of the failures.
    """
    # Nothing of it is data: see above.
    return f"""WITH tools AS (
  SELECT name, CAST(row_number() OVER (ORDER BY name) AS INTEGER) AS tool
  FROM (SELECT DISTINCT tool AS name FROM calls) AS found
), settled AS (
  SELECT session, n, tools.tool AS tool, sig, started_ms, ended_ms, retry_after_ms, ctx_logged,
    err + {CAUSED} * {numbered("source", SOURCES, 0)} + CASE WHEN err = 0 AND changes THEN {CHANGED} ELSE 0 END AS what,
    CASE WHEN err = 0 THEN 0
      ELSE CAST(32 * (day + 2) + fold + 1 AS BIGINT) * {DAY} + {levels(spec, ("elapsed",))} END AS own
  FROM (
    SELECT *, {numbered("error_type", ERROR_TYPES, OTHER)} AS err
    FROM calls
    WHERE error_type IS NULL OR error_type <> '{INVALID}'
  ) AS ran
  JOIN tools ON ran.tool = tools.name
), placed AS (
  SELECT *,
    row_number() OVER ({_BY_SESSION}) AS pos,
    CAST(sum(what >> 8) OVER ({_BY_SESSION} {_SO_FAR}) AS INTEGER) AS worked,
    lag(what) OVER ({_BY_SESSION}) AS former
  FROM settled
), marked AS (
  SELECT session, tool, sig, started_ms, ended_ms, retry_after_ms, ctx_logged,
    (CAST(tool AS BIGINT) << {TOOL_BITS}) + CAST(pos AS BIGINT) * {PLACE} + what AS mark,
    worked - (what >> 8) AS worked_before,
    CASE WHEN own > 0 THEN own + {levels(spec, ("prev",))} ELSE 0 END AS own
  FROM placed
), by_tool AS (
  SELECT *,
{_indented(_tool_columns(spec))}
  FROM marked
), packed AS (
  SELECT session, tool, sig, started_ms, ended_ms, retry_after_ms, ctx_logged, mark, worked_before,
    CAST(tool_row AS INTEGER) AS tool_row,
    CASE WHEN own > 0 AND {_near(spec, "next")} THEN next_mark END AS next_mark,
    CASE WHEN own > 0 THEN own + CASE WHEN before_1 >> {TOOL_BITS} = tool
      AND ({family(kind("before_1"))}) = ({family(kind("mark"))}) THEN 0 ELSE 1 END
      + 2 * (share >> 10) + {levels(spec, ("fail_share", "tool_run"))} ELSE 0 END AS own
  FROM by_tool
), by_signature AS (
  SELECT *,
{_indented(_signature_columns(spec))}
  FROM packed
  WHERE own > 0 OR sig IN (SELECT sig FROM calls WHERE error_type IS NOT NULL AND sig IS NOT NULL)
), done AS (
  SELECT session, tool, mark, ended_ms, retry_after_ms, ctx_logged, tool_row, again_started - ended_ms AS delay,
    own + {levels(spec, ("attempt",))} AS own,
    CASE WHEN {_near(spec, "again")} THEN 1 + CASE WHEN {kind("again_mark")} = 0 THEN 2 ELSE 0 END
      + 4 * ((again_mark >> 6) & 3) + CASE WHEN again_worked > worked_before THEN 16 ELSE 0 END ELSE 0 END
      + CASE WHEN next_mark IS NULL OR sig IS NOT NULL AND next_mark = again_mark THEN 0
        WHEN {kind("next_mark")} = 0 THEN 96 ELSE 32 END AS done
  FROM by_signature
  WHERE own > 0
), by_run AS (
  SELECT *,
{_indented(_run_columns(spec))}
  FROM done
), runs AS (
  SELECT tool, mark, ended_ms, ctx_logged, own, delay, done, tool_row - (high >> 22) AS run, (own >> 1) & 31 AS calls,
    CASE WHEN tool_row - (high >> 22) > ((own >> 1) & 31) THEN first_ended
      WHEN (high & {HALF - 1}) < {HALF // 2} THEN (high & {HALF - 1}) * {HALF} + (low & {HALF - 1}) END AS first_ended,
    CASE WHEN due IS NULL OR ended_ms IS NULL THEN retry_after_ms
      WHEN due > ended_ms OR retry_after_ms IS NOT NULL THEN due - ended_ms END AS ra
  FROM by_run
), failures AS (
  SELECT *, CASE WHEN ended_ms < first_ended THEN 0 ELSE ended_ms - first_ended END AS since
  FROM runs
), coded AS (
  SELECT own >> 39 AS day_fold, tool, {kind("mark")} AS err, ctx_logged, done & 1 AS repeated, done & 2 AS worked_again,
    done & 32 AS changed, done & 64 AS corrected,
    CAST(((own >> 8) & {CODES}) + {code(spec, ("err_run", "ra", "since"))} AS INTEGER) AS context,
    CASE WHEN (done & 1) = 1 THEN {code(spec, ACTION)} ELSE {NO_ACTION} END AS action,
    CASE WHEN (done & 1) = 1 THEN (done >> 2) & 3 ELSE -1 END AS src
  FROM failures
), summed AS (
  SELECT day_fold, tool, err, context, action, src, count(*) AS number, sum(repeated) AS n, sum(worked_again) AS s,
    sum(changed) AS corrected_n, sum(corrected) AS corrected, count(ctx_logged) AS logged,
    count(CASE WHEN ctx_logged <> context THEN 1 END) AS skewed
  FROM coded
  GROUP BY day_fold, tool, err, context, action, src
), {_refused(spec)}
SELECT CAST((day_fold >> 5) - 2 AS INTEGER) AS day, CAST((day_fold & 31) - 1 AS INTEGER) AS fold, name AS tool,
  {named("err", ERROR_TYPES, 1)} AS error_type, context, action, {named("src", SOURCES, 0)} AS source,
  CAST(n AS DOUBLE) AS n, CAST(s AS DOUBLE) / 2 AS s, CAST(number - n AS DOUBLE) AS unlabelled,
  CAST(corrected_n AS DOUBLE) / 32 AS corrected_n, CAST(corrected AS DOUBLE) / 64 AS corrected,
  CAST(logged AS DOUBLE) AS logged, CAST(skewed AS DOUBLE) AS skewed
FROM summed
JOIN tools ON summed.tool = tools.tool
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
    order = f"ORDER BY n, {_TIES}, error_type NULLS LAST"
    return f"""refused AS (
  SELECT day, fold, tool, next_error,
    {in_time(spec, "next", "pos", "next_pos")} AND (sig IS NULL OR next_sig IS NULL OR next_sig <> sig) AS changed
  FROM (
    SELECT *,
      lead(sig) OVER (PARTITION BY session, tool {order}) AS next_sig,
      lead(error_type) OVER (PARTITION BY session, tool {order}) AS next_error,
      lead(started_ms) OVER (PARTITION BY session, tool {order}) AS next_started,
      lead(pos) OVER (PARTITION BY session, tool {order}) AS next_pos
    FROM (
      SELECT session, n, day, fold, tool, sig, error_type, started_ms, ended_ms,
        CAST(sum(CASE WHEN error_type = '{INVALID}' THEN 0 ELSE 1 END)
          OVER (PARTITION BY session {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS INTEGER) AS pos
      FROM calls
      WHERE session IN (SELECT session FROM calls WHERE error_type = '{INVALID}')
    ) AS placed
  ) AS followed
  WHERE error_type = '{INVALID}'
)"""  # noqa: S608


def _near(spec: FeatureSpec, which: str) -> str:
    # The same call again has the same tool; should a signature be of several, it is the order that counts.
    far = place if which == "next" else lambda mark: place(in_order(mark))
    return in_time(spec, which, far("mark"), far(f"{which}_mark"))


def _tool_columns(spec: FeatureSpec) -> list[str]:
    window = f"OVER ({_TOOL_BY_TOOL})"
    # Calls and failures in one sum; the frame holds the call itself, since an empty one would have no sum.
    one = f"{SHARE} + CASE WHEN {kind('mark')} > 0 THEN 1 ELSE 0 END"
    return [
        *(f"lag(mark, {back}) {window} AS before_{back}" for back in sorted({1, *(e + 1 for e in run_edges(spec))})),
        f"row_number() {window} AS tool_row",
        f"CAST(sum({one}) OVER ({_TOOL_BY_TOOL} {looking_back(spec)}) - ({one}) AS INTEGER) AS share",
        f"lead(mark) {window} AS next_mark",
        f"lead(started_ms) {window} AS next_started",
    ]


def _signature_columns(spec: FeatureSpec) -> list[str]:
    window = f"OVER ({_BY_SIGNATURE})"
    return [
        f"CAST(count(*) OVER ({_BY_SIGNATURE} {looking_back(spec)}) AS INTEGER) AS signed",
        f"lead(mark) {window} AS again_mark",
        f"lead(started_ms) {window} AS again_started",
        # The call itself may have worked and changed something: what counts is what worked before it.
        f"lead(worked_before) {window} AS again_worked",
    ]


def _run_columns(spec: FeatureSpec) -> list[str]:
    """
    Over the failures of a tool: the wait that the server asked for, and the row and end of the run's first call. If the
    run began before the window, it is the end of the first failure in it.
    """
    begun = f"CASE WHEN (own & 1) = 1 THEN CAST(tool_row AS BIGINT) * {HALF} + {{half}} END"
    high, low = f"coalesce(ended_ms >> 22, {HALF // 2})", f"coalesce(ended_ms & {HALF - 1}, 0)"
    return [
        f"max(ended_ms + retry_after_ms) OVER ({_BY_TOOL} {_SO_FAR}) AS due",
        f"max({begun.format(half=high)}) OVER ({_BY_TOOL} {_SO_FAR}) AS high",
        f"max({begun.format(half=low)}) OVER ({_BY_TOOL} {_SO_FAR}) AS low",
        f"first_value(ended_ms) OVER ({_BY_TOOL} {looking_back(spec)}) AS first_ended",
    ]


def _indented(columns: Iterable[str]) -> str:
    return ",\n".join(f"    {column}" for column in columns)
