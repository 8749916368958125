"""
A11: the same SQL on Apache Spark makes the same cells, on a real cluster of this machine (the extra `spark`).
"""

import os
import random

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from guardrails.core.records.record import SCHEMA_VERSION
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.extract import extract
from guardrails.offline.learning.rows import spark as module
from guardrails.offline.learning.rows.cells import UNDATED, Cell, merged
from tests.offline.learning.made_rows import by_sql, session, table
from tests.offline.learning.rows.test_sql import SPECS

from .made_tables import write


RECORDS = int(os.environ.get("GUARDRAILS_SPARK_RECORDS", "1000000"))
MASTER = "local[2]"
ODD = pa.schema(
    [
        ("schema_version", pa.int32()),
        ("session_id", pa.string()),
        ("run", pa.string()),
        ("n", pa.int64()),
        ("ts_ms", pa.int64()),
        ("duration_ms", pa.int64()),
        ("elapsed_ms", pa.int64()),
        ("tool", pa.string()),
        ("sig", pa.int64()),
        ("status", pa.string()),
        ("error_type", pa.string()),
        ("retry_after_ms", pa.int64()),
        ("mutates", pa.bool_()),
        ("retry_source", pa.string()),
    ]
)

# It leaves sockets of its own open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
pytest.importorskip("pyspark", reason="needs the extra `spark` and Java")


def test_a_master_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(TrainingError, match="no Spark at `nonsense`"), module.session("nonsense"):
        pass


def undivided(cells: list[Cell]) -> list[Cell]:
    # Spark hashes the names of sessions in its own way.
    return merged(cell._replace(fold=UNDATED) for cell in cells)


def test_spark_and_duckdb_make_identical_cells_of_a_million_records(tmp_path: Path) -> None:
    write(tmp_path / "calls.parquet", RECORDS)
    by_spark = extract([tmp_path / "calls.parquet"], master=MASTER)
    by_duck = extract([tmp_path / "calls.parquet"])
    assert len(by_duck.cells) > 10_000
    assert undivided(by_spark.cells) == undivided(by_duck.cells)
    assert by_spark.newest_day == by_duck.newest_day


def odd_records(rng: random.Random) -> list[dict[str, Any]]:
    """
    Calls of many sessions with times that tie or go back, numbers twice, no values, versions and names of all kinds.
    """
    names = ("search", "b\u00fccher", "\u691c\u7d22", "\U0001f50d find", 'a "b"\n; --', "", "Search")
    errors = (None, None, "timeout", "rate_limit", "validation_error", "nobody knows it", "")
    found: list[dict[str, Any]] = []
    for number in range(120):
        clock = 1_767_225_600_000 + rng.randrange(10**9)
        for n in range(rng.randrange(1, 40)):
            clock += rng.choice((0, 0, 10, 2_000, 70_000, -5_000, 10**8))
            error = rng.choice(errors)
            found.append(
                {
                    "schema_version": rng.choice((SCHEMA_VERSION, SCHEMA_VERSION, None, SCHEMA_VERSION + 1)),
                    "session_id": rng.choice((f"s\u00e9ance-{number}",) * 20 + (None, "")),
                    "run": rng.choice(("", "", "second life")),
                    "n": n // rng.choice((1, 1, 3)),
                    "ts_ms": rng.choice((clock,) * 9 + (None, -1, 2**60)),
                    "duration_ms": rng.choice((0, 5, 3_000, None)),
                    "elapsed_ms": rng.choice((n * 1_000, None)),
                    "tool": rng.choice((*names, None)),
                    "sig": rng.choice((None, 1, 2, -(2**63), 2**63 - 1)),
                    "status": rng.choice(("error" if error else "ok", None)),
                    "error_type": error,
                    "retry_after_ms": rng.choice((None, None, 500, 60_000)),
                    "mutates": rng.choice((True, False, None)),
                    "retry_source": rng.choice((None, "agent", "policy", "explore", "x")),
                }
            )
    return found + found[:50]


@pytest.mark.parametrize("without", [(), ("n",)], ids=["numbers that tie", "times alone"])
def test_spark_and_duckdb_make_identical_cells_of_odd_records_in_any_order(
    without: Sequence[str], tmp_path: Path
) -> None:
    rng = random.Random(11)
    records = odd_records(rng)
    found: list[list[Cell]] = []
    for master in (MASTER, None, None):
        rng.shuffle(records)
        folder = tmp_path / f"records-{len(found)}"
        folder.mkdir()
        for part in range(3):
            rows = pa.Table.from_pylist(records[part::3], schema=ODD)
            pq.write_table(rows.drop_columns(list(without)), folder / f"{part}.parquet")
        found.append(undivided(extract([folder], master=master).cells))
    assert len(found[0]) > 200
    assert found[0] == found[1] == found[2]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with module.session(MASTER, {"spark.sql.shuffle.partitions": "4"}) as made:
        yield made


@pytest.mark.parametrize("name", ["shipped", "as many codes as there may be"])
def test_spark_and_duckdb_agree_on_every_failure(name: str, spark: Any, tmp_path: Path) -> None:
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
