"""
Write records off the hot path, one JSON line each, and read them back.

`put` appends to a queue in memory and returns. One daemon thread per sink turns records into lines and appends them to
the file in batches. A batch is whole lines, written under `flock`, so several processes may share one file (a regular
file on a local POSIX file system).

A clean exit loses nothing. After `kill -9` (or SIGTERM without a handler, or `os._exit`) the records that are not in
the file yet are lost. Those are at most `max_lines` records (1,000), and the batch being written. A caller that puts
more waits until the writer has caught up. While the file is faulty, records wait up to 64 MiB instead. Lines are handed
to the operating system, not forced to the disk, unless the sink is `durable`: a power failure may take more.
"""

from .base import Entry, MemorySink, OnRecord, Record, Sink
from .erase import Arguments, ErasePath, Results, parse_path
from .json_lines import JsonLines
from .line import to_line
from .reading import ReadReport, by_session, read


__all__ = [
    "Arguments",
    "Entry",
    "ErasePath",
    "JsonLines",
    "MemorySink",
    "OnRecord",
    "ReadReport",
    "Record",
    "Results",
    "Sink",
    "by_session",
    "parse_path",
    "read",
    "to_line",
]
