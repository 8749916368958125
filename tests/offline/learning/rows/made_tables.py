"""
Records by the million, for measuring extraction: sessions that interleave, failures, repeats; no more meaning than that.
"""

import itertools

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numpy.typing import NDArray


EPOCH_MS: Final = 1_767_225_600_000
ERRORS: Final = (
    "rate_limit",
    "timeout",
    "server_error",
    "unavailable",
    "connection",
    "not_found",
    "auth",
    "validation",
)
TOOLS: Final = 12
CALLS: Final = 50
"""Calls of a session."""
FAILING: Final = 0.27
REPEATED: Final = 0.56
CHUNK: Final = 1_000_000
TOGETHER: Final = 8
"""Tables that are written to folders at a time, so that each gets row groups of a good size."""


def tables(records: int, seed: int = 1) -> Iterator[pa.Table]:
    """
    *records* rows of one executed call each, in tables of a million, each sorted by time.
    """
    for chunk in range(0, records, CHUNK):
        yield _table(min(CHUNK, records - chunk), chunk, np.random.default_rng((seed, chunk)))


def write(path: Path, records: int, *, seed: int = 1) -> None:
    """
    One Parquet file of them.
    """
    writer: Any = None
    for table in tables(records, seed):
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=250_000)
    writer.close()


def _together(made: Iterator[pa.Table]) -> Iterator[list[pa.Table]]:
    while some := list(itertools.islice(made, TOGETHER)):
        yield some


def _table(rows: int, first: int, rng: np.random.Generator) -> pa.Table:
    session = first // CALLS + np.arange(rows) // CALLS
    n = np.arange(rows) % CALLS
    tool = rng.integers(0, TOOLS, rows)
    fails = rng.random(rows) < FAILING
    repeats = (n > 0) & np.concatenate(([False], fails[:-1])) & (rng.random(rows) < REPEATED)
    # A repeat is a repeat of the latest call that is none.
    origin = np.maximum.accumulate(np.where(repeats, 0, np.arange(rows)))
    tool = tool[origin]
    sig = _mixed((np.arange(rows) + first)[origin] * TOOLS + tool)
    error = (tool + rng.integers(0, 3, rows)) % len(ERRORS)
    wait = np.where(rng.random(rows) < 0.6, rng.integers(0, 2_000, rows), rng.integers(0, 200_000, rows))
    duration = rng.integers(5, 3_000, rows)
    clock = np.cumsum(wait + duration)
    began = clock[(np.arange(rows) // CALLS) * CALLS]
    start = EPOCH_MS + (session * 7_919 % 86_400_000) + clock - began
    header = np.where(fails & (error == 0), rng.choice([500, 4_000, 20_000, 90_000], rows), 0)
    order = np.argsort(start, kind="stable")
    columns = {
        "session_id": session,
        "n": n + 1,
        "ts_ms": start + duration,
        "duration_ms": duration,
        "elapsed_ms": clock - began,
        "sig": sig,
    }
    return pa.table(
        {
            **{name: pa.array(column[order].astype(np.int64)) for name, column in columns.items()},
            "tool": _names([f"tool_{k}" for k in range(TOOLS)], tool[order]),
            "error_type": _names([*ERRORS], error[order], fails[order]),
            "retry_after_ms": pa.array(header[order].astype(np.int64), mask=header[order] == 0),
            "mutates": pa.array((tool % 3 == 0)[order]),
        }
    )


def _mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    # Signatures are hashes: spread over all 64 bits.
    return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.int64)


def _names(names: list[str], index: NDArray[np.int64], there: NDArray[np.bool_] | None = None) -> pa.Array:
    indices = pa.array(index.astype(np.int32), mask=None if there is None else ~there)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names)).cast(pa.string())
