"""
Running commands to their end or to a time limit: each in a process group that ends with it, their output bounded.
"""

import atexit
import os
import signal
import subprocess
import threading
import time

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple


GRACE_S: Final = 1.0
"""Until an output that somebody still holds is given up."""
_groups: set[int] = set()
"""Those that run now."""

Step = tuple[str, Sequence[Sequence[str]]]
"""`;`, `&&` or `||`, and behind it the words of commands that are piped into each other."""


class Started(NamedTuple):
    """
    A program, ready to be started with these arguments, environment and folder.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """All of it: nothing else of this process's own may be added."""
    folder: str


@dataclass(slots=True)
class Bounded:
    """
    The beginning and the end of an output, *limit* bytes together.
    """

    limit: int
    kept: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """
        Take in *data*; what lies between is forgotten.
        """
        half = self.limit // 2
        self.total += len(data)
        self.kept += data
        del self.kept[half : len(self.kept) - half]

    def text(self) -> str:
        """
        Returns the output, with a line that says how much is missing.
        """
        left_out, half = self.total - len(self.kept), self.limit // 2
        between = f"\n[... {left_out:,} bytes left out ...]\n".encode() if left_out else b""
        return (self.kept[:half] + between + self.kept[half:]).decode(errors="replace")


class Ended(NamedTuple):
    """
    The end of a command.
    """

    output: str
    """stdout and stderr as they came."""
    complete: bool
    """Nothing of the output was left out."""
    exit_code: int | None
    """Negative: the signal that ended it; None: it was killed at its time limit."""
    seconds: float
    left_behind: bool
    """Processes it had started still ran and were killed."""


def run(
    steps: Iterable[Step],
    start: Callable[[Sequence[str], str], Started],
    folder: str,
    *,
    timeout: float,
    limit: int,
) -> Ended:
    """
    Run *steps*, which begin in *folder*, for at most *timeout* seconds; `start(words, folder)` is the program of *words* in
    its sandbox. Of their output *limit* bytes are held, however much there is.

    `cd` is the one command of a shell that is known here. Raises OSError if a command is too long to be started.
    """
    began, output, left_behind = time.monotonic(), Bounded(limit), False
    code: int | None = 0
    reading, writing = os.pipe()
    # Who left its group may hold the pipe for ever: the thread closes it when that ends, and nobody waits.
    reader = threading.Thread(target=_drain, args=(reading, output), daemon=True)
    reader.start()
    try:
        for sign, stages in steps:
            if code is None or (sign == "&&" and code) or (sign == "||" and not code):
                continue
            program, *words = stages[0]
            if program == "cd" and len(stages) == 1:
                given = " ".join(words)
                place = os.path.normpath(os.path.join(folder, given))
                code = 0 if os.path.isdir(place) else 1
                folder = folder if code else place
                fault = f"cd: {given}: there is no such folder\n" if code else ""
                os.write(writing, fault.encode(errors="replace"))
            else:
                code, left = _pipeline([start(words, folder) for words in stages], writing, began + timeout)
                left_behind = left_behind or left
    finally:
        os.close(writing)
        reader.join(GRACE_S)
    seconds = round(time.monotonic() - began, 3)
    return Ended(output.text(), output.total <= limit, code, seconds, left_behind and code is not None)


def _pipeline(programs: Sequence[Started], writing: int, deadline: float) -> tuple[int | None, bool]:
    """
    Returns the exit code of the last of *programs*, None if they have not ended by the *deadline*, and whether one left
    processes behind. Each has a session of its own, so that no terminal is asked anything.
    """
    running: list[subprocess.Popen[bytes]] = []
    code, left = None, False
    try:
        for program in programs:
            before = running[-1].stdout if running else None
            process = subprocess.Popen(
                program.arguments,
                cwd=program.folder,
                env=program.environment,
                stdin=before or subprocess.DEVNULL,
                stdout=writing if program is programs[-1] else subprocess.PIPE,
                stderr=writing,
                start_new_session=True,
            )
            _groups.add(process.pid)
            running.append(process)
            if before is not None:
                before.close()
        while running:
            code = running[0].wait(max(0, deadline - time.monotonic()))
            # At once: later on its number may be another's.
            left = _end(running.pop(0).pid) or left
    except subprocess.TimeoutExpired:
        code = None
    finally:
        for process in running:
            left = _end(process.pid) or left
            process.wait()
    return code, left


def _end(group: int) -> bool:
    """
    Kill the process *group*; whether there was one.
    """
    _groups.discard(group)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
        return True
    return False


@atexit.register
def _end_all() -> None:
    # A command runs in a thread of its own if its tool has a time limit; Ctrl-C does not reach that thread.
    for group in tuple(_groups):
        _end(group)


def _drain(reading: int, output: Bounded) -> None:
    while data := os.read(reading, 1 << 16):
        output.add(data)
    os.close(reading)
