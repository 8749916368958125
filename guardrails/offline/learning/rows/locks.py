"""
One training at a time: a lock that ends with its process, even if that is killed.
"""

import os

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guardrails.core.values.errors import TrainingError


@contextmanager
def alone(lock: Path, at: Path) -> Iterator[None]:
    """
    Be the only one who holds the file *lock*, which stays. Raises TrainingError, which names the work *at* it, if
    another process holds the lock. Raises OSError if the file cannot be made.
    """
    import fcntl

    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(20).strip() or "unknown"
            raise TrainingError(
                f"another training works in `{at}` (process {owner}): wait for it, or name another"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
