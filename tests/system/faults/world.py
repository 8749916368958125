"""
Sixteen workers in four processes on one store, and what befalls them.
"""

import contextlib
import heapq
import json
import random
import signal
import subprocess
import sys
import threading
import time

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.system.faults.grounds import Ground
from tests.system.faults.shop import PROCESSES


ROOT: Final = Path(__file__).resolve().parents[3]
END_S: Final = 30.0
"""How long a worker may take to end its last step once all faults are over."""


class World:
    """
    A run of *seconds* on *ground*; the executions that its tools saw are in `ran` afterwards.
    """

    def __init__(self, ground: Ground, seed: int, seconds: float) -> None:
        self.ground, self.seed, self.seconds = ground, seed, seconds
        self.ran: list[dict[str, Any]] = []
        self.befell: Counter[str] = Counter()
        self.hung: list[str] = []
        self._random = random.Random(seed)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._names: list[int] = [0] * PROCESSES
        self._readers: list[threading.Thread] = []
        self._begun = threading.Semaphore(0)

    @property
    def pids(self) -> list[int]:
        """
        Those of the processes that live.
        """
        return [process.pid for process in self._processes if process.poll() is None]

    def run(self) -> None:
        """
        Start the workers, let faults befall them, end both.
        """
        try:
            for number in range(PROCESSES):
                self._processes.append(self._started(number))
            for _ in range(PROCESSES):
                if not self._begun.acquire(timeout=END_S):
                    self.hung.append(f"a process did not begin within {END_S:g} s")
            self.suffer()
            self._end()
        finally:
            for process in self._processes:
                process.kill()
                process.wait()
            for reader in self._readers:
                reader.join()

    def suffer(self) -> None:
        """
        One fault after the other by chance, several at once; what has begun is ended before this ends.
        """
        chosen = self._random
        faults = {"kill -9": self._kill, "pause": self._pause, **self.ground.faults(chosen, lambda: self.pids)}
        names, over = sorted(faults), time.monotonic() + self.seconds
        undo: list[tuple[float, int, Callable[[], None]]] = []
        # Each at least once, then by chance.
        chosen.shuffle(names)
        coming = [*names]
        following = time.monotonic() + 0.5
        for number in range(1 << 30):
            now = time.monotonic()
            while undo and (undo[0][0] <= now or now >= over):
                heapq.heappop(undo)[2]()
            if now >= over:
                return
            if now >= following and now < over - 1:
                name = coming.pop() if coming else chosen.choice(names)
                ends = faults[name]()
                self.befell[name] += 1
                if ends is not None:
                    heapq.heappush(undo, (now + chosen.uniform(0.05, 1.2), number, ends))
                following = now + chosen.uniform(0.05, 0.6)
            time.sleep(0.01)

    def _started(self, number: int) -> "subprocess.Popen[bytes]":
        self._names[number] += 1
        name = f"p{number}.{self._names[number]}"
        ground = self.ground
        told = {"place": ground.place(number), "timeout": ground.timeout, "seed": self.seed}
        command = [
            sys.executable,
            "-m",
            "tests.system.faults.worker",
            json.dumps({**told, "process": number, "name": name}),
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        reader = threading.Thread(target=self._read, args=(process,))
        reader.start()
        self._readers.append(reader)
        return process

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line == b'"begun"\n':
                    self._begun.release()
                elif line.endswith(b"\n"):
                    self.ran.append(json.loads(line))

    def _kill(self) -> None:
        number = self._random.randrange(PROCESSES)
        self._processes[number].kill()
        self._processes[number].wait()
        self._close(self._processes[number])
        self._processes[number] = self._started(number)

    def _pause(self) -> Callable[[], None]:
        process = self._processes[self._random.randrange(PROCESSES)]
        process.send_signal(signal.SIGSTOP)
        # One that was killed meanwhile is not there any more, which `send_signal` knows.
        return lambda: process.send_signal(signal.SIGCONT)

    def _end(self) -> None:
        for process in self._processes:
            self._close(process)
        until = time.monotonic() + END_S
        for number, process in enumerate(self._processes):
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.hung.append(f"process {number} did not end within {END_S:g} s after the last fault")
            if process.returncode not in (0, None):
                self.hung.append(f"process {number} ended with code {process.returncode}")

    @staticmethod
    def _close(process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
