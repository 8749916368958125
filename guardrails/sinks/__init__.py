"""
Records as JSON lines: written by batches, rotated, redacted, read back.

**What is promised.** `put` keeps a record in memory. It becomes a line, and is in the file, once 1 MiB or a quarter of
`max_lines` wait, 50 ms after the first that waits, and at `flush`, `close` and the end of the process (`atexit`, the
end of a child of multiprocessing). Who puts the record that fills a batch writes the batch; the rest are written by a
timer, which starts with the first record and runs once.

* **Whole lines.** A batch is one write of whole lines, under `flock`, with `O_APPEND`. Threads and processes share a
  file. A line that a killed process left torn is ended before the next. A file and its folder are made if they are
  missing, the file for its owner only (0600).
* **`kill -9`** (SIGTERM without a handler, `os._exit`) loses what waits: at most `max_lines` (1,000). With `durable`
  each `put` returns once its record is on the disk (one `fsync` for all that wait): none is lost, of a power failure
  neither.
* **A full disk**, or a file that cannot be opened or locked: nothing of the batch stays in the file, calls go on, and
  records wait in memory. It is tried again every 5 s, at `flush` and at `close`. Beyond `max_queued_bytes` (64 MiB)
  records are dropped and counted. What cannot be written at `close` has failed. The log says each once.
* **A forked child** starts empty: what the parent had put is the parent's.
* **Rotation**: one process renames the file, under the lock; the others open the new one. `read` goes through all.
* **Secrets** that have a known form or name become `[redacted]` before every sink, in arguments, results and messages.
  `redact_secrets=False` writes them plain. Signatures and hashes are those of the plain values.
* **Erasing**: `redact` takes values away by path, `arguments` and `results` all but their hashes. A message that
  repeats 8 letters or digits in a row of what went is erased whole. `erased` lists what went.
"""

from guardrails.core.erasing import Erasing, Record

from .base import Entry, MemorySink, OnRecord, Sink
from .json_lines import JsonLines, to_line
from .rotate import ReadReport, by_session, read


__all__ = ["Entry", "Erasing", "JsonLines", "MemorySink", "OnRecord", "ReadReport", "Record", "Sink"]
__all__ += ["by_session", "read", "to_line"]
