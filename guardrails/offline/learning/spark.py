"""
Facts by Apache Spark, for records that have outgrown one machine: the same Python function, by session, over any place that
Spark reads.
"""

import os
import sys

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.retries.model import Count
from guardrails.core.values.errors import TrainingError, needs

from .facts import Fact, Facts, facts_of
from .rows import Read, rows_of, selected


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SETTINGS: Final = {
    "spark.app.name": "guardrails train",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What a record does not hold is unknown, not an error that ends the run.
    "spark.sql.ansi.enabled": "false",
}


def read_on_spark(master: str, paths: Iterable[str], settings: dict[str, str] | None = None) -> Read:
    """
    Returns the facts in *paths*, of Parquet (`.parquet`, or folders of it) or JSON lines, counted by Spark at *master*
    (`local[4]`, `spark://host:7077`, `yarn`).

    Raises MissingExtra without pyspark, TrainingError if no session can be made or nothing can be read.
    """
    with needs("spark", "Spark"):
        from pyspark.sql import SparkSession

    if master.startswith("local"):
        # Workers are of the same Python, whether its folder is on the path or not.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths, made = list(paths), Facts()
    try:
        with SparkSession.builder.master(master).config(map={**SETTINGS, **(settings or {})}).getOrCreate() as spark:
            # Each part of the data has whole sessions, in the order in which their calls settled.
            frame = spark.sql(" UNION ALL ".join(_table(spark, path, f"records_{at}") for at, path in enumerate(paths)))
            frame = frame.repartition("session").sortWithinPartitions(*frame.columns)
            for fact, (n, s) in frame.rdd.mapPartitions(_counted).reduceByKey(Count.plus).collect():
                made.add(Fact(*fact), n, s)
    except Exception as error:
        first = str(error).splitlines()[0]
        raise TrainingError(f"Spark at `{master}` cannot read the records: {first:.300}") from error
    return Read(made, len(paths), [])


def _table(spark: "SparkSession", path: str, name: str) -> str:
    lines = path.rstrip("/").endswith((".json", ".jsonl", ".ndjson", ".gz", ".zst"))
    reader = spark.read.option("mergeSchema", "true")
    frame = reader.json(path) if lines else reader.parquet(path)
    frame.createOrReplaceTempView(name)
    return selected(frame.columns, name, "xxhash64(session_id, run)")


def _counted(rows: Iterable[Any]) -> Iterator[tuple[Fact, Count]]:
    for fact, worked in facts_of(rows_of(rows, Counter())):
        yield fact, Count(1, worked)
