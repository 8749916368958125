"""
What it takes to extract many records: python -m benchmarks.learning.extraction [--records N] [--folders N]

The aims: ten million in 25 CPU s and 1 GB, 200 million from hash-partitioned folders in 360 CPU s and 1.2 GB. Beside them
stands what a plain aggregation of the same file takes in the same run, since machines and their load differ.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time

from pathlib import Path

import duckdb

from benchmarks.learning.records import write, write_partitioned
from guardrails.offline.learning.extract import extract


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--folders", type=int, default=0, help="partition them by session into so many folders")
    parser.add_argument("--folder", type=Path, help="where to work; kept")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(chosen.folder or Path(temporary), chosen.records, chosen.folders)


def measure(folder: Path, records: int, folders: int) -> None:
    """
    Make *records*, extract them, and print what that took.
    """
    data = folder / f"records-{records}-{folders}"
    if not data.exists():
        data.mkdir(parents=True)
        making = (
            (write_partitioned, (data, records, folders)) if folders else (write, (data / "calls.parquet", records))
        )
        # A process of its own, so that its memory is not counted.
        maker = multiprocessing.get_context("spawn").Process(target=making[0], args=making[1])
        maker.start()
        maker.join()
    files = [str(path) for path in data.rglob("*.parquet")]
    plain = time.process_time()
    with duckdb.connect(config={"threads": 2}) as con:
        con.read_parquet(files).create_view("calls")
        con.sql("SELECT tool, error_type, count(*), sum(sig % 7) FROM calls GROUP BY tool, error_type").fetchall()
    began, plain = time.process_time(), time.process_time() - plain
    with tempfile.TemporaryDirectory(dir=folder) as cells:
        made = extract([data], Path(cells), whole_by="bucket", progress=_show)
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    labelled = sum(cell.n for cell in made.cells)
    print(
        f"{records:,} records: {took:.1f} CPU s ({took / records * 1e6:.2f} us a record, {took / plain:.1f} times a plain"
        f" aggregation), {peak:.0f} MB at most, {len(made.cells):,} cells, {labelled:,.0f} labelled failures"
    )


def _show(done: int, total: int, what: str) -> None:
    print(f"\r{done:,} of {total:,} {what}", end="\n" if done == total else "", file=sys.stderr)


if __name__ == "__main__":
    main()
