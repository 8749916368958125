"""
Cells by Apache Spark, for records that have outgrown one machine: the same SQL text, the same cells.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import TrainingError, needs

from .cells import COUNTS, DAY_MS, KEYS, UNDATED, apart_from
from .counting import Counted, Group, Run
from .duck import only_good
from .rows import calls_of, rows_of
from .sql import extraction


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SETTINGS: Final = {
    "spark.app.name": "guardrails train",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What was read once is read three times: rows, signatures that failed, refusals.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # What a record does not hold is unknown, not an error that ends the run.
    "spark.sql.ansi.enabled": "false",
}
SESSION: Final = "xxhash64(session_id, {run})"
_MASTERS: Final = ("local", "spark://", "yarn", "k8s://")


@contextmanager
def session(master: str, settings: dict[str, str] | None = None) -> "Iterator[SparkSession]":
    """
    A Spark session at *master* (`local[4]`, `spark://host:7077`, `yarn`), ended after use.

    Raises MissingExtra without pyspark, TrainingError if no session can be made.
    """
    with needs("spark", "Spark"):
        from pyspark.sql import SparkSession

    if not master.startswith(_MASTERS):
        raise TrainingError(
            f"no Spark at `{master}`: a master is `local[4]`, `spark://host:7077`, `yarn` or `k8s://...`"
        )
    builder = SparkSession.builder.master(master)
    # The default is 200, of which a single machine sees the overhead only.
    few = {"spark.sql.shuffle.partitions": "16"} if master.startswith("local") else {}
    for name, value in {**SETTINGS, **few, **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        made = builder.getOrCreate()
    except Exception as error:
        raise TrainingError(f"no Spark at `{master}`: {str(error).splitlines()[0]:.300}") from error
    try:
        yield made
    finally:
        made.stop()


def count_on_spark(master: str, run: Run) -> Counted:
    """
    Returns as `counting.count`, in one piece; the files must be where the cluster's machines can read them.
    """
    cells = run.work / "cells-spark.parquet"
    with session(master) as spark:
        _fresh(spark, run.groups).createOrReplaceTempView("rows")
        total, newest = _only(
            spark.sql(f"SELECT count(*), max(CASE WHEN ended_ms <= {run.latest_ms} THEN ended_ms END) FROM rows")  # noqa: S608
        )
        run.progress(0, total, "calls")
        newest_day = (newest or 0) // DAY_MS if newest else UNDATED
        spark.sql(calls_of(run.spec, apart_from(newest_day))).createOrReplaceTempView("calls")
        _write(spark.sql(extraction(run.spec)), cells, _cell_schema())
        run.progress(total, total, "calls")
    return Counted([cells], newest or 0)


def _fresh(spark: "SparkSession", groups: Sequence[Group]) -> "DataFrame":
    """
    The good rows of all *groups*.
    """
    made: Any = None
    for group in groups:
        read = spark.read.option("mergeSchema", "true").parquet(*map(_uri, group.files))
        read.createOrReplaceTempView("input")
        if group.staged:
            rows = spark.sql(only_good("input"))
        else:
            run = "run" if "run" in read.columns else "0"
            rows = spark.sql(only_good(f"({rows_of(read.columns, SESSION.format(run=run))}) AS made"))
        made = rows if made is None else made.unionByName(rows)
    return made


def _only(frame: "DataFrame") -> tuple[Any, ...]:
    return tuple(frame.collect()[0])


def _uri(path: str | Path) -> str:
    """
    Returns the place where Spark finds a file. Raises TrainingError for a name that it would take for a pattern.
    """
    full = str(Path(path).resolve())
    if set(full) & set("*?[]{}\\"):
        raise TrainingError(f"Spark takes `{full}` for a pattern: move it to where no name has any of *?[]{{}}")
    # A bare path is one of the cluster's own file system.
    return f"file://{full}"


def _write(frame: "DataFrame", to: Path, schema: Any) -> None:
    with needs("train", "training"):
        import pyarrow.parquet as pq

    pq.write_table(frame.toArrow().select(schema.names).cast(schema), to)


def _cell_schema() -> Any:
    with needs("train", "training"):
        import pyarrow as pa

    kinds = {"tool": pa.string(), "error_type": pa.string(), "source": pa.string()}
    return pa.schema([*((key, kinds.get(key, pa.int32())) for key in KEYS), *((name, pa.float64()) for name in COUNTS)])
