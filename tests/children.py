"""
Processes that a test starts, and that do not outlive it.
"""

import subprocess

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def child(*command: str, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """
    Start *command*, whose pipes speak text. Kills it at the end of the block if it still runs: a test that fails leaves
    nothing behind that another one could trip over.
    """
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
