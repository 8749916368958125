"""
Running a command to its end or to its time limit: its process group with it, its output bounded.
"""

import os
import secrets
import selectors
import signal
import subprocess
import time

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .launch import MARK
from .living import lives
from .started import Started


GRACE_S: Final = 1.0
"""Between SIGTERM and SIGKILL."""
MAX_ROUNDS: Final = 5
_POLL_S: Final = 0.05
_CHUNK: Final = 1 << 16


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
        Returns the kept output, with a line that says how much is missing.
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


def run_started(started: Started, *, timeout: float, limit: int) -> Ended:
    """
    Run what a sandbox *started*, as `run_to_end` does. Raises OSError if it cannot be started.
    """
    return run_to_end(
        started.arguments,
        folder=started.folder,
        environment=started.environment,
        timeout=timeout,
        limit=limit,
        whole=started.whole,
    )


def run_to_end(
    arguments: Sequence[str],
    *,
    folder: str,
    environment: Mapping[str, str],
    timeout: float,
    limit: int,
    whole: bool = False,
) -> Ended:
    """
    Run *arguments* in *folder*, for at most *timeout* seconds; of its output at most *limit* bytes are kept, however
    much there is. All processes of its group end with it, on Linux also those that left the group, unless they cleared
    their environment. With *whole* its first process ends all others once its own children are killed. Raises OSError
    if it cannot be started.
    """
    started = time.monotonic()
    output = Bounded(limit)
    mark = f"{MARK}={secrets.token_hex(16)}"
    process = subprocess.Popen(  # noqa: S603  what is run is for the guards to judge
        list(arguments),
        cwd=folder,
        env={**environment, MARK: mark.partition("=")[2]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    left_behind = False
    try:
        with lives(lambda: _end_now(process.pid, mark.encode(), whole=whole)):
            finished = _read_until_exit(process, output, started + timeout)
            if not finished:
                end_children(process.pid) if whole else _signal(process.pid, signal.SIGTERM)
                _read_until_exit(process, output, time.monotonic() + GRACE_S)
            left_behind = _signal(process.pid, 0, others=True)
    finally:
        # Its exit is not collected yet, so that no other group can have taken its number.
        _signal(process.pid, signal.SIGKILL)
        code = process.wait()
        left_behind = end_strays(mark.encode()) or left_behind
        if process.stdout is not None:
            process.stdout.close()
    seconds = round(time.monotonic() - started, 3)
    return Ended(output.text(), output.total <= limit, code if finished else None, seconds, left_behind and finished)


def _end_now(pid: int, mark: bytes, *, whole: bool) -> None:
    """
    End the command *pid*, since this process ends and nobody will wait for it.
    """
    # The first process of one that is whole ends all others when it is asked to, and only then.
    _signal(pid, signal.SIGTERM if whole else signal.SIGKILL)
    if not whole:
        end_strays(mark)


def end_children(pid: int) -> None:
    """
    Kill the children of *pid*: of a `Started` that is whole, so all of it ends, and its first process last.
    """
    for child in _pids():
        with suppress(OSError, ValueError, IndexError):
            if int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1]) == pid:
                os.kill(child, signal.SIGKILL)


def _read_until_exit(process: "subprocess.Popen[bytes]", output: Bounded, deadline: float) -> bool:
    """
    Read on until the process has ended; False if it has not by *deadline* (monotonic seconds).
    """
    pipe = process.stdout
    if pipe is None:
        raise ValueError("its output is not piped")
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        reading = True
        while True:
            ended = _has_ended(process.pid)
            left = deadline - time.monotonic()
            if left <= 0 and not ended:
                return False
            if not reading:
                time.sleep(min(_POLL_S, max(0.0, left))) if not ended else None
            elif ended or selector.select(min(_POLL_S, left)):
                # What is left in the pipe once it has ended is read too, but nobody is waited for who still holds it.
                reading = _drain(pipe.fileno(), output, most=256 if ended else 16)
            if ended:
                return True


def _drain(handle: int, output: Bounded, most: int) -> bool:
    """
    Read what is there, *most* chunks of it; False at the end of the pipe.
    """
    for _ in range(most):
        try:
            data = os.read(handle, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        output.add(data)
    return True


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal(group: int, number: int, *, others: bool = False) -> bool:
    """
    Send a signal to the *group*; whether there is one, with *others* whether any but its ended leader is in it.
    """
    if others:
        return any(_group_of(pid) == group and pid != group for pid in _pids())
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


def end_strays(mark: bytes) -> bool:
    """
    Kill what left the group (`setsid`, a daemon) but still has *mark* in its environment; whether there was any. Linux only.
    """
    found = False
    for _ in range(MAX_ROUNDS):
        strays = [pid for pid in _pids() if _is_marked(pid, mark)]
        for pid in strays:
            with suppress(OSError):
                handle = os.pidfd_open(pid)
                try:
                    # By its handle, so that no other process that got its number since is hit.
                    if _is_marked(pid, mark):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                        found = True
                finally:
                    os.close(handle)
        if not strays:
            break
    return found


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def _pids() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    except OSError:
        return []


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None
