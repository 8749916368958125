"""
Running commands to their end or to a time limit: each in a process group that ends with it, their output bounded.
"""

import atexit
import errno
import os
import signal
import subprocess
import threading
import time

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final


GRACE_S: Final = 1.0
"""Between SIGTERM and SIGKILL."""
NOT_RUN: Final = 126
NOT_FOUND: Final = 127
"""Exit codes: it is no program; there is no such program."""
_CHUNK: Final = 1 << 16
_groups: set[int] = set()
"""Those that run now."""

Step = tuple[str, Sequence[Sequence[str]]]
"""`;`, `&&` or `||`, and behind it the words of commands that are piped into each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """
    A program, ready to be started with these arguments, environment and folder.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """All of it: nothing else of this process's own may be added."""
    folder: str


Start = Callable[[Sequence[str], str], Started]
"""`start(words, folder)` is the program of *words* in its sandbox, if there is one."""


@dataclass(slots=True)
class Bounded:
    """
    The beginning and the end of an output, *limit* bytes together.
    """

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """
        Take in *data*; what lies between is forgotten.
        """
        self.total += len(data)
        room = self.limit // 2 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > self.limit:
            del self.tail[: -self.limit // 2]

    def text(self) -> str:
        """
        Returns the output, with a line that says how much is missing.
        """
        tail = self.tail[-(self.limit // 2) :]
        left_out = self.total - len(self.head) - len(tail)
        between = f"\n[... {left_out:,} bytes left out ...]\n".encode() if left_out else b""
        return (bytes(self.head) + between + bytes(tail)).decode(errors="replace")


@dataclass(slots=True)
class Ended:
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


def run(steps: Iterable[Step], start: Start, folder: str, *, timeout: float, limit: int) -> Ended:
    """
    Run *steps*, which begin in *folder*, for at most *timeout* seconds. Of their output *limit* bytes are held, however
    much there is. The process group of each program ends with it.

    `cd` is the one command of a shell that is known here. Raises OSError if a command is too long to be started.
    """
    began = time.monotonic()
    output = Bounded(limit)
    reading, writing = os.pipe()
    # Who left its group may hold the pipe for ever: the thread closes it when that ends, and nobody waits.
    reader = threading.Thread(target=_drain, args=(reading, output), daemon=True)
    reader.start()
    code: int | None = 0
    left_behind = False
    try:
        for sign, stages in steps:
            if code is None:
                break
            if sign != ";" and (sign == "&&") is not (code == 0):
                continue
            if len(stages) == 1 and stages[0][0] == "cd":
                folder, code = _changed(folder, stages[0], writing)
                continue
            pipeline = _Pipeline(writing)
            try:
                pipeline.begin([start(words, folder) for words in stages])
                code = pipeline.wait(began + timeout)
            finally:
                left_behind = pipeline.end() or left_behind
    finally:
        os.close(writing)
        reader.join(GRACE_S)
    seconds = round(time.monotonic() - began, 3)
    return Ended(output.text(), output.total <= limit, code, seconds, left_behind and code is not None)


def end_group(group: int, number: int = signal.SIGKILL) -> bool:
    """
    Send a signal to the process *group*; whether there was one.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


@atexit.register
def _end_all() -> None:
    # A command runs in a thread of its own if its tool has a time limit; Ctrl-C does not reach that thread.
    for group in tuple(_groups):
        end_group(group)


class _Pipeline:
    """
    Commands that are piped into each other. Each has a session of its own, so that no terminal is asked anything.
    """

    def __init__(self, writing: int) -> None:
        self._writing = writing
        self._left: list[subprocess.Popen[bytes]] = []
        self._code = 0
        self._left_behind = False

    def begin(self, programs: Sequence[Started]) -> None:
        """
        Start *programs*. One that cannot be started has an exit code, as a shell gives it.
        """
        stdin: int = subprocess.DEVNULL
        before: subprocess.Popen[bytes] | None = None
        for place, program in enumerate(programs):
            last = place == len(programs) - 1
            try:
                process = subprocess.Popen(
                    program.arguments,
                    cwd=program.folder,
                    env=program.environment,
                    stdin=stdin if before is None or before.stdout is None else before.stdout,
                    stdout=self._writing if last else subprocess.PIPE,
                    stderr=self._writing,
                    start_new_session=True,
                )
            except OSError as error:
                if error.errno == errno.E2BIG:
                    raise
                _say(self._writing, f"{program.arguments[0]}: {error.strerror}")
                self._code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
                process = None
            finally:
                if before is not None and before.stdout is not None:
                    before.stdout.close()
            if process is not None:
                _groups.add(process.pid)
                self._left.append(process)
                self._code = 0
            before = process

    def wait(self, deadline: float) -> int | None:
        """
        Returns the exit code of the last command, once all have ended. Returns None if they have not by *deadline*.
        """
        try:
            while self._left:
                code = self._left[0].wait(max(0, deadline - time.monotonic()))
                self._over(self._left.pop(0))
                self._code = self._code or (code if not self._left else 0)
        except subprocess.TimeoutExpired:
            return None
        return self._code

    def end(self) -> bool:
        """
        End what is left; whether a command that ended by itself had left something behind.
        """
        for process in self._left:
            end_group(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for process in self._left:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0, deadline - time.monotonic()))
            end_group(process.pid)
            process.wait()
            _groups.discard(process.pid)
        return self._left_behind

    def _over(self, process: "subprocess.Popen[bytes]") -> None:
        self._left_behind = end_group(process.pid) or self._left_behind
        _groups.discard(process.pid)


def _changed(folder: str, words: Sequence[str], writing: int) -> tuple[str, int]:
    target = os.path.join(folder, *words[1:2])
    if os.path.isdir(target):
        return os.path.normpath(target), 0
    _say(writing, f"cd: {' '.join(words[1:])}: there is no such folder")
    return folder, 1


def _say(writing: int, text: str) -> None:
    os.write(writing, f"{text}\n".encode(errors="replace"))


def _drain(reading: int, output: Bounded) -> None:
    while data := os.read(reading, _CHUNK):
        output.add(data)
    os.close(reading)
