"""
Streams the calls that the readers of transcripts read into a Parquet file, as rows.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from xxhash import xxh3_64_intdigest

from guardrails.core.values.errors import needs
from guardrails.offline.transcripts import Copies, RecordedCall, Report, open_calls

from .rows import LATEST_MS, ROW


if TYPE_CHECKING:
    import pyarrow as pa


BATCH: Final = 50_000
_MASK: Final = 2**63 - 1


def convert(path: str, to: Path, report: Report, copies: Copies) -> int:
    """
    Write the calls of the transcript *path* that have an outcome to the Parquet file *to*. Returns the number of calls.
    Calls that *copies* knows from other files are left out.

    Sessions of different files are different sessions, even with equal ids, except one that goes on behind copies.
    Raises OSError.
    """
    with needs("train", "training"):
        import pyarrow.parquet as pq

    schema = row_schema()
    rows = _rows(path, report, copies)
    written = 0
    with pq.ParquetWriter(to, schema) as writer:
        while batch := list(islice(rows, BATCH)):
            written += len(batch)
            writer.write_batch(_batch(batch, schema))
    return written


def row_schema() -> "pa.Schema":
    """
    Returns the columns of rows as Arrow has them.
    """
    with needs("train", "training"):
        import pyarrow as pa

    kinds = {"STRING": pa.string(), "BIGINT": pa.int64(), "INTEGER": pa.int32(), "BOOLEAN": pa.bool_()}
    return pa.schema([(name, kinds[kind]) for name, kind in ROW.items()])


def _batch(rows: list[dict[str, Any]], schema: "pa.Schema") -> "pa.RecordBatch":
    with needs("train", "training"):
        import pyarrow as pa

    return pa.RecordBatch.from_pylist(rows, schema=schema)


def _told(path: str, report: Report) -> Iterator[RecordedCall]:
    for call in open_calls(path, report):
        if call.has_result:
            call.source = f"{path}\n{call.source}"
            yield call


def _rows(path: str, report: Report, copies: Copies) -> Iterator[dict[str, Any]]:
    began: dict[int, int] = {}
    for n, call in enumerate(copies.once(_told(path, report)), 1):
        session = xxh3_64_intdigest(f"{call.source}\n{call.session_id}".encode("utf-8", "replace")) & _MASK
        started = call.ts_ms if call.ts_ms is not None and 0 <= call.ts_ms <= LATEST_MS else None
        ended = None if started is None else started + (call.duration_ms or 0)
        if started is not None and session not in began:
            began[session] = started
        yield {
            "session": session,
            "n": n,
            "tool": call.tool.encode("utf-8", "replace").decode(),
            "sig": call.signature,
            "error_type": (call.error_type or "other") if call.is_error else None,
            "started_ms": started,
            "ended_ms": ended,
            # A clock that goes backwards makes no session younger than nothing.
            "elapsed_ms": None if ended is None else max(0, ended - began[session]),
            "retry_after_ms": call.retry_after_ms if call.is_error else None,
            "changes": call.read_only is not True,
            "source": None,
            "ctx_logged": None,
            "spec_version": None,
        }
