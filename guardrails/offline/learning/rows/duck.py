"""
DuckDB with bounded memory, and the few texts that only it runs.
"""

import gc
import os

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from guardrails.core.values.errors import NothingFoundError, needs

from .cells import COUNTS, KEYS, UNDATED, Cell
from .rows import RECORD, ROW, rows_of


MEMORY_MB: Final = 700
"""What DuckDB may use; the process takes about 250 MB more. Sorts that are larger go to disk."""
THREADS: Final = 4
"""At most: each sorts in memory of its own."""
LONGEST_LINE: Final = 1 << 26
"""Bytes of a record's line."""


class Duck:
    """
    A connection. Data beyond *memory_mb* goes to the folder *spill*. Raises MissingExtra without DuckDB.
    """

    def __init__(self, spill: Path, memory_mb: int = MEMORY_MB) -> None:
        with needs("train", "training"):
            import duckdb

        self.failed = duckdb.Error
        self._con = duckdb.connect(
            config={
                "memory_limit": f"{memory_mb}MB",
                "threads": str(min(THREADS, os.cpu_count() or 1)),
                "preserve_insertion_order": "false",
                "temp_directory": str(spill),
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._con.close()

    def sql(self, text: str) -> Any:
        """
        Returns the relation of *text*. Returns None if it is no query.
        """
        return self._con.sql(text)

    def one(self, text: str) -> tuple[Any, ...]:
        """
        Returns the only row of *text*.
        """
        row: tuple[Any, ...] = self.sql(text).fetchall()[0]
        return row

    def view(self, name: str, paths: Sequence[Path | str]) -> list[str]:
        """
        Let *name* be the rows of Parquet files, columns by their names; those names.
        """
        relation = self._con.read_parquet([str(path) for path in paths], union_by_name=True, hive_partitioning=False)
        relation.create_view(name, replace=True)
        return list(relation.columns)

    def view_lines(self, path: str) -> list[str]:
        """
        Let `input` be the lines of records in the file *path*; a line that is none has no values. Its columns.
        """
        relation = self._con.read_json(
            path, columns=RECORD, format="newline_delimited", ignore_errors=True, maximum_object_size=LONGEST_LINE
        )
        relation.create_view("input", replace=True)
        return list(RECORD)

    def write(self, text: str, to: Path, partition: str | None = None) -> None:
        """
        Write the rows of *text* to the Parquet file *to*, all of it or nothing. If the column *partition* is named,
        they go to a folder for each of its values.
        """
        new = to.with_name(f"{to.name}.new")
        relation: Any = self._con.sql(text)
        if partition is None:
            relation.write_parquet(str(new), compression="zstd")
        else:
            relation.write_parquet(str(new), partition_by=[partition], overwrite=True)
        new.replace(to)


def cells_of(relation: Any) -> list[Cell]:
    """
    Returns the rows of *relation*, which has the columns of a cell. Equal values are one object: there may be millions
    of cells.
    """
    from guardrails.offline.learning.numeric import np

    columns = []
    for column in relation.to_arrow_table().columns:
        coded = column.combine_chunks().dictionary_encode()
        values = np.array(coded.dictionary.to_pylist(), dtype=object)
        columns.append(values[coded.indices.to_numpy()].tolist())
    # The collector of cycles would look through them again and again while they become more.
    collects = gc.isenabled()
    gc.disable()
    try:
        return list(map(Cell._make, zip(*columns, strict=True)))
    finally:
        if collects:
            gc.enable()


def rows_text(columns: Sequence[str]) -> str:
    """
    Returns the text that makes rows of the view `input` with *columns*, bad ones too.

    Raises NothingFoundError if a required column is missing.
    """
    for name in ("session_id", "tool"):
        if name not in columns:
            raise NothingFoundError(f"records have a column `{name}`; these have {', '.join(sorted(columns)):.300}")
    # Two lives of one name are two sessions.
    return rows_of(columns, f"CAST(hash(session_id, {'run' if 'run' in columns else '0'}) >> 1 AS BIGINT)")


def only_good(source: str) -> str:
    """
    Returns the good rows of *source*, a view or a text in brackets.
    """
    return f"SELECT {', '.join(ROW)} FROM {source} WHERE bad = 0"  # noqa: S608


def merged_text(source: str, folds_from: int) -> str:
    """
    Returns the sums of the cells in *source*; sessions of days before *folds_from* are no longer kept apart.
    """
    keys = ", ".join(KEYS)
    fold = f"CASE WHEN day >= {folds_from} THEN fold ELSE {UNDATED} END"
    picked = ", ".join(f"{fold} AS fold" if key == "fold" else key for key in KEYS)
    sums = ", ".join(f"sum({count}) AS {count}" for count in COUNTS)
    return f"SELECT {keys}, {sums} FROM (SELECT {picked}, {', '.join(COUNTS)} FROM {source}) AS picked GROUP BY {keys}"  # noqa: S608
