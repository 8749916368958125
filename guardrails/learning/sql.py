"""
The offline extraction as one SQL text, rendered from a feature specification.

It runs unchanged on DuckDB and on Spark, over a view `calls` with the columns of `COLUMNS`. Nothing in it comes from
data: edges and windows are integers of a checked specification, the rest is written here.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ..retries.factors import ACTION, Factor
from ..retries.labels import INVALID, NO_ACTION
from ..retries.spec import FeatureSpec
from ..types import ERROR_TYPES
from .cells import SOURCES


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
_KINDS: Final = 64
"""A position and the kind of its call in one number: position * 64 + kind, which is 0 for a success."""
_SHARE: Final = 1_024
"""The same of a tool's calls and failures in a window."""


def extraction(spec: FeatureSpec) -> str:
    """
    The query whose rows are the cells of the view `calls`, unordered; its columns are the fields of `Cell`.

    An error type outside the closed list counts as `other`. Three sorts are all that costs time: what they carry is
    packed (position and kind of a call in one number), and the third is only of signatures that failed.
    """
    # Nothing of it is data: see above.
    return f"""WITH settled AS (
  SELECT session, day, fold, tool, sig, err, started_ms, ended_ms, retry_after_ms, ctx_logged, src, worked_now, worked,
    pos, CAST(pos AS BIGINT) * {_KINDS} + err AS mark,
    CASE WHEN err > 0 THEN own_code + {_code(spec, ("prev",))} ELSE 0 END AS own_code
  FROM (
    SELECT *,
      CAST(row_number() OVER (PARTITION BY session ORDER BY n) AS INTEGER) AS pos,
      CAST(sum(worked_now) OVER (PARTITION BY session ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        AS INTEGER) AS worked,
      lag(CASE WHEN err = 0 THEN 0 ELSE 1 END) OVER (PARTITION BY session ORDER BY n) AS prev
    FROM (
      SELECT session, n, day, fold, tool, sig, started_ms, ended_ms, retry_after_ms, ctx_logged,
        {_numbered("source", SOURCES, 0)} AS src,
        {_numbered("error_type", ERROR_TYPES, OTHER)} AS err,
        CASE WHEN error_type IS NULL AND changes THEN 1 ELSE 0 END AS worked_now,
        CASE WHEN error_type IS NULL THEN 0 ELSE {_code(spec, ("ra", "elapsed"))} END AS own_code
      FROM calls
      WHERE error_type IS NULL OR error_type <> '{INVALID}'
    ) AS numbered
  ) AS placed
), by_tool AS (
  SELECT *,
{_indented(_tool_columns(spec))}
  FROM settled
), of_tool AS (
  SELECT *, {_position("next")} AS next_pos, {_kind("next")} AS next_err,
{_indented(_run_columns(spec))}
  FROM by_tool
), of_run AS (
  SELECT *,
    CASE WHEN err > 0 THEN {_run(spec)} ELSE 0 END AS err_run,
    CASE WHEN err > 0 AND {_in_time(spec, "next")} AND (sig IS NULL OR next_sig IS NULL OR next_sig <> sig)
      THEN CASE WHEN next_err = 0 THEN 2 ELSE 1 END ELSE 0 END AS changed
  FROM of_tool
), since_then AS (
  SELECT *, {_first_ended(spec)} AS first_ended
  FROM of_run
), packed AS (
  SELECT session, day, fold, tool, sig, err, started_ms, ended_ms, retry_after_ms, ctx_logged, src,
    worked - worked_now AS worked_before, worked, pos, mark, changed,
    CASE WHEN ended_ms < first_ended THEN 0 ELSE ended_ms - first_ended END AS since,
    CASE WHEN err > 0 THEN own_code + {_code(spec, ("err_run", "fail_share", "tool_run", "since"))} ELSE 0 END AS tool_code
  FROM since_then
), by_signature AS (
  SELECT *,
{_indented(_signature_columns(spec))}
  FROM packed
  WHERE err > 0 OR sig IN (SELECT sig FROM calls WHERE error_type IS NOT NULL AND sig IS NOT NULL)
), unpacked AS (
  SELECT *, {_position("again")} AS again_pos, {_kind("again")} AS again_err
  FROM by_signature
  WHERE err > 0
), failures AS (
  SELECT *, {_in_time(spec, "again")} AS repeated, again_started - ended_ms AS delay
  FROM unpacked
), coded AS (
  SELECT day, fold, tool, err, ctx_logged, repeated, changed,
    tool_code + {_code(spec, ("attempt",))} AS context,
    CASE WHEN repeated THEN {_code(spec, ACTION)} ELSE {NO_ACTION} END AS action,
    CASE WHEN repeated THEN again_src ELSE -1 END AS src,
    CASE WHEN repeated AND again_err = 0 THEN 1 ELSE 0 END AS worked_again
  FROM failures
), {_refused(spec)}
SELECT day, fold, tool, {_named("err", ERROR_TYPES, 1)} AS error_type, context, action,
  {_named("src", SOURCES, 0)} AS source,
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
    {_in_time(spec, "next")} AND (sig IS NULL OR next_sig IS NULL OR next_sig <> sig) AS changed
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


def _tool_columns(spec: FeatureSpec) -> list[str]:
    window = "OVER (PARTITION BY session, tool ORDER BY pos)"
    backs = max(spec.run, _last(spec, "tool_run"))
    columns = [f"lag(mark, {back}) {window} AS mark_{back}" for back in range(1, backs + 1)]
    if spec.uses_times:
        columns += [f"lag(ended_ms, {back}) {window} AS ended_{back}" for back in range(1, spec.run + 1)]
    if "fail_share" in spec.by_name:
        # Calls and failures in one sum; the frame holds the call itself, since an empty one would have no sum.
        frame = f"ORDER BY pos RANGE BETWEEN {spec.lookback} PRECEDING AND CURRENT ROW"
        one = f"{_SHARE} + CASE WHEN err > 0 THEN 1 ELSE 0 END"
        columns.append(f"CAST(sum({one}) OVER (PARTITION BY session, tool {frame}) - ({one}) AS INTEGER) AS share")
    return [
        *columns,
        f"lead(mark) {window} AS next_mark",
        f"lead(sig) {window} AS next_sig",
        f"lead(started_ms) {window} AS next_started",
    ]


def _signature_columns(spec: FeatureSpec) -> list[str]:
    window = "OVER (PARTITION BY session, sig ORDER BY pos)"
    return [
        *(f"lag(pos, {back}) {window} AS attempt_{back}" for back in range(1, _last(spec, "attempt") + 1)),
        f"lead(mark) {window} AS again_mark",
        f"lead(started_ms) {window} AS again_started",
        f"lead(src) {window} AS again_src",
        # The call itself may have worked and changed something: what counts is what worked before it.
        f"lead(worked_before) {window} AS again_worked",
    ]


def _run_columns(spec: FeatureSpec) -> list[str]:
    backs = max(spec.run, _last(spec, "tool_run"))
    return [f"{_position(str(back))} AS pos_{back}, {_kind(str(back))} AS err_{back}" for back in range(1, backs + 1)]


def _mark(which: str) -> str:
    return f"mark_{which}" if which.isdigit() else f"{which}_mark"


def _position(which: str) -> str:
    return f"({_mark(which)} - {_mark(which)} % {_KINDS}) / {_KINDS}"


def _kind(which: str) -> str:
    return f"{_mark(which)} % {_KINDS}"


def _numbered(column: str, names: Sequence[str], other: int) -> str:
    """
    The number of the name in *column*: 0 for none; of error types 1 for the first, of sources 0.
    """
    first = 1 if names is ERROR_TYPES else 0
    steps = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(names, first))
    return f"CASE WHEN {column} IS NULL THEN 0 ELSE CASE {column} {steps} ELSE {other} END END"


def _named(column: str, names: Sequence[str], first: int) -> str:
    steps = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names, first))
    return f"CASE {column} {steps} ELSE '' END"


def _last(spec: FeatureSpec, name: str) -> int:
    return spec.by_name[name].edges[-1] + 1 if name in spec.by_name else 0


def _within(spec: FeatureSpec, position: str) -> str:
    return f"{position} >= pos - {spec.lookback}"


def _run(spec: FeatureSpec) -> str:
    """
    How many of the failures just before by the same tool are of the same kind, as far as is looked back.
    """
    steps = [
        f"WHEN pos_{back} IS NULL OR NOT ({_within(spec, f'pos_{back}')}) OR err_{back} <> err THEN {back - 1}"
        for back in range(1, spec.run + 1)
    ]
    return f"CASE {' '.join(steps)} ELSE {spec.run} END"


def _first_ended(spec: FeatureSpec) -> str:
    if not spec.uses_times:
        return "ended_ms"
    steps = [f"WHEN {back} THEN ended_{back}" for back in range(1, spec.run + 1)]
    return f"CASE err_run {' '.join(steps)} ELSE ended_ms END"


def _in_time(spec: FeatureSpec, which: str) -> str:
    signed = "sig IS NOT NULL AND " if which == "again" else ""
    gap = f"{which}_started - ended_ms"
    return (
        f"{signed}{which}_pos IS NOT NULL AND {which}_pos - pos <= {spec.max_calls}"
        f" AND coalesce({gap}, 0) BETWEEN 0 AND {spec.max_ms}"
    )


def _value(spec: FeatureSpec, name: str) -> str:
    """
    The expression of a factor; see `factors` for what each means.
    """
    if name == "attempt":
        steps = [
            f"WHEN sig IS NULL OR attempt_{back} IS NULL OR NOT ({_within(spec, f'attempt_{back}')}) THEN {back - 1}"
            for back in range(1, _last(spec, name) + 1)
        ]
        return f"CASE {' '.join(steps)} ELSE {len(steps)} END"
    if name == "tool_run":
        steps = [
            f"WHEN pos_{back} IS NULL OR pos_{back} <> pos - {back} THEN {back - 1}"
            for back in range(1, min(_last(spec, name), spec.lookback) + 1)
        ]
        return f"CASE {' '.join(steps)} ELSE {len(steps)} END"
    return {
        "fail_share": (
            f"CASE WHEN share >= {_SHARE} THEN CAST({100 * _SHARE} * (share % {_SHARE}) AS DOUBLE)"
            f" / (share - share % {_SHARE}) END"
        ),
        "ra": "retry_after_ms",
        "elapsed": "elapsed_ms",
        # greatest() of an unknown value is no unknown value in either engine.
        "since": "CASE WHEN ended_ms < first_ended THEN 0 ELSE ended_ms - first_ended END",
        "waited": "(delay - retry_after_ms)",
        "between": "CASE WHEN again_worked > worked THEN 1 ELSE 0 END",
        "reach": "(delay + since)",
    }.get(name, name)


def _code(spec: FeatureSpec, names: Iterable[str]) -> str:
    """
    What those of *names* that the specification has add to the packed code.
    """
    factors = [spec.by_name[name] for name in names if name in spec.by_name]
    return (
        "\n      + ".join(f"{factor.stride} * {_level(factor, _value(spec, factor.name))}" for factor in factors) or "0"
    )


def _level(factor: Factor, value: str) -> str:
    unknown = f"WHEN {value} IS NULL THEN 0 " if factor.nullable else ""
    steps = " ".join(f"WHEN {value} <= {edge} THEN {at + factor.nullable}" for at, edge in enumerate(factor.edges))
    return f"CASE {unknown}{steps} ELSE {factor.radix - 1} END"


def _indented(columns: Iterable[str]) -> str:
    return ",\n".join(f"    {column}" for column in columns)
