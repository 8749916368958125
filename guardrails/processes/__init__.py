"""
Programs in a sandbox; and the output of this one, whose reader may leave, as that of `guardrails report | head -1` does.
"""

import io
import os
import sys

from contextlib import suppress
from typing import Any


class _Pipe(io.FileIO):
    """
    A descriptor that takes what nobody reads any more.
    """

    def write(self, data: Any) -> int:
        with suppress(BrokenPipeError):
            return super().write(data)
        return memoryview(data).nbytes


def leave_quietly() -> None:
    """
    From now on a reader that leaves is no failure: a command goes on to its end, and has the exit code of that.
    """
    sys.stdout, sys.stderr = _quiet(sys.stdout), _quiet(sys.stderr)


def let_go_of_stdout() -> None:
    """
    The rest of the output is written nowhere. Else Python's own end would fail for it.
    """
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _quiet(stream: Any) -> Any:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False))
    # What the encoding cannot say is escaped.
    return io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=True)
