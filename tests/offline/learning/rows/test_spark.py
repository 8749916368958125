"""
A11: the same SQL on Apache Spark makes the same cells, on a real cluster of this machine: `python3 dev.py spark`.
"""

import os

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.learning.records import tables, write
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.extract import extract
from guardrails.offline.learning.rows import spark as module
from guardrails.offline.learning.rows.cells import UNDATED, Cell, merged
from tests.offline.learning.made_rows import by_sql, session, table
from tests.offline.learning.rows.test_sql import SPECS


RECORDS = int(os.environ.get("GUARDRAILS_SPARK_RECORDS", "1000000"))
MASTER = "local[2]"

# It leaves sockets of its own open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
pytest.importorskip("pyspark", reason="Spark has an environment of its own: python3 dev.py spark")


def test_a_master_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(TrainingError, match="no Spark at `nonsense`"), module.session("nonsense"):
        pass


def undivided(cells: list[Cell]) -> list[Cell]:
    # Spark hashes the names of sessions in its own way.
    return merged(cell._replace(fold=UNDATED) for cell in cells)


def test_spark_and_duckdb_make_identical_cells_of_a_million_records(tmp_path: Path) -> None:
    write(tmp_path / "calls.parquet", RECORDS)
    by_spark = extract([tmp_path / "calls.parquet"], tmp_path / "spark", master=MASTER)
    by_duck = extract([tmp_path / "calls.parquet"], tmp_path / "duck")
    assert len(by_duck.cells) > 10_000
    assert undivided(by_spark.cells) == undivided(by_duck.cells)
    assert by_spark.newest_day == by_duck.newest_day


def test_spark_reads_on_where_duckdb_would(tmp_path: Path) -> None:
    (whole,) = tables(20_000)
    halves = tmp_path / "halves"
    halves.mkdir()
    found = {}
    for master in (None, MASTER):
        for half in range(2):
            pq.write_table(whole.slice(half * 10_000, 10_000), halves / f"{half}.parquet")
            made = extract([halves], tmp_path / ("by-spark" if master else "by-duckdb"), master=master)
        found[master] = undivided(made.cells)
        for file in halves.iterdir():
            file.unlink()
    assert found[None] == found[MASTER]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with module.session(MASTER, {"spark.sql.shuffle.partitions": "4"}) as made:
        yield made


@pytest.mark.parametrize("name", ["shipped", "as many codes as there may be"])
def test_spark_and_duckdb_agree_on_every_failure(name: str, spark: Any, tmp_path: Path) -> None:
    import random

    from guardrails.offline.learning.rows.sql import extraction

    rng = random.Random(8)
    calls = table([session(rng, rng.randrange(1, 60)) for _ in range(200)])
    pq.write_table(calls, tmp_path / "calls.parquet")
    spark.read.parquet(str(tmp_path / "calls.parquet")).createOrReplaceTempView("calls")
    rows = spark.sql(extraction(SPECS[name])).collect()
    found = {
        (day, tool, error): (*rest, n, s, fixes, fixed)
        for day, _, tool, error, *rest, n, s, _, fixes, fixed, _, _ in rows
    }
    assert found == by_sql(SPECS[name], calls)
