"""
Judge files in several processes, to the same figures as in one.

Each process judges parts: files that stand one after the other, those of one folder that are one source together. A part
may go by itself if it shares no source, no session that waits for a result and no call with another. If one does, or
a process cannot do what this one can, one process judges all files from the first on.
"""

import os
import signal
import tempfile
import time

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import current_process, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

from guardrails.core.values.errors import GuardrailsError
from guardrails.offline.judge.result import Judgement

from .inputs import STDIN, Input
from .interrupts import interruptible
from .merging import ApartError, Merged
from .part import Order, Part, work_on
from .progress import Progress
from .run import Work, decides, judge_files


ENOUGH: Final = 32 << 20
"""Bytes, unpacked, that are worth a process: they take longer to judge than it takes to start."""
PACKING: Final = 8
"""Bytes that one byte of a packed transcript is, about."""
PARTS: Final = 4
"""Parts for each process, so that none waits long for the last."""
LOOK_S: Final = 0.1
"""Seconds between two looks for Ctrl-C."""
GRACE_S: Final = 5.0
"""Seconds that processes have to say what they found until Ctrl-C."""


class WorkerLostError(GuardrailsError):
    """
    A process that judged files ended before it was done.
    """


def judge_in_parallel(work: Work, names: Sequence[str], processes: int | None = None) -> list[Judgement]:
    """
    Returns the same as `judge_files`, by as many *processes* as are worth it (None: as many as there are cores). The
    policies were loaded from the files or names *names*.

    Raises as `judge_files` does, and WorkerLostError if a process is ended by another.
    """
    if processes is None:
        processes = min(_cores(), sum(map(_weight, work.files)) // max(1, ENOUGH))
    parts = _parts(work.files, processes) if processes > 1 else []
    if len(parts) < 2 or not _possible(work):
        return judge_files(work)
    found = None
    with interruptible() as interrupted, ExitStack() as stack:
        merged = stack.enter_context(Merged(work))
        finished = False
        try:
            folder = None if work.decisions is None else stack.enter_context(_folder())
            crew = stack.enter_context(_crew(list(names), min(processes, len(parts))))
            finished = _Boss(work, parts, crew, merged, folder).judge_all(interrupted)
        except ApartError:
            pass
        if finished or interrupted:
            found = merged.judgements(finished=finished)
    return judge_files(work) if found is None else found


@contextmanager
def _folder() -> Iterator[Path]:
    """
    A new one until the end of the block. Raises ApartError if there is no room for it.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="guardrails-")
    except OSError as error:
        raise ApartError("no folder can be made") from error
    with made as path:
        yield Path(path)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _possible(work: Work) -> bool:
    return (
        work.checkpoint is None
        and hasattr(signal, "pthread_sigmask")
        and not current_process().daemon
        and all(file.path != STDIN and any(map(Path.is_file, file.paths)) for file in work.files)
    )


def _weight(file: Input) -> int:
    return file.size * (PACKING if file.path.endswith((".gz", ".zst", ".zstd")) else 1)


def _parts(files: Sequence[Input], processes: int) -> list[list[Input]]:
    """
    *files* in their order, in parts of about the same weight; the files of one folder that are one source are together.
    """
    least = sum(map(_weight, files)) // (PARTS * processes)
    parts: list[list[Input]] = []
    heavy = least
    for _, group in groupby(enumerate(files), key=lambda each: (each[1].folder, each[1].folder is None and each[0])):
        together = [file for _, file in group]
        weight = sum(map(_weight, together))
        if parts and heavy + weight <= least:
            parts[-1] += together
            heavy += weight
        else:
            parts.append(together)
            heavy = weight
    return parts


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    part: int | None = None
    progress: Progress | None = None


@contextmanager
def _crew(names: list[str], count: int) -> Iterator[list[_Worker]]:
    """
    So many processes, which end with the block. Raises ApartError if none can be started.
    """
    context, crew = get_context("spawn"), list[_Worker]()
    try:
        # Ctrl-C goes to all processes of a terminal; this one tells the others. Starting the tracker would undo the mask.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for _ in range(count):
                here, there = context.Pipe()
                process = context.Process(target=work_on, args=(there, names), daemon=True)
                process.start()
                there.close()
                crew.append(_Worker(process, here))
        except OSError as error:
            raise ApartError("no process can be started") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield crew
    finally:
        for worker in crew:
            worker.process.kill()
        for worker in crew:
            worker.process.join()
            worker.connection.close()


class _Boss:
    """
    Gives the parts out, the heaviest first, and takes in what was found.
    """

    def __init__(
        self, work: Work, parts: list[list[Input]], crew: Sequence[_Worker], merged: Merged, folder: Path | None
    ) -> None:
        self._work, self._parts, self._crew, self._merged = work, parts, list(crew), merged
        self._folder = folder
        """Of the decisions."""
        self._weights = [sum(map(_weight, part)) for part in parts]
        self._left = sorted(range(len(parts)), key=self._weights.__getitem__)
        self._decides = [decides(policy) for policy in work.policies]
        self._limit = work.limit // len(crew)
        self._began = time.monotonic()
        self._until: float | None = None

    def judge_all(self, interrupted: Sequence[bool]) -> bool:
        """
        Returns all parts, or those found until Ctrl-C, and whether they came to their end. Raises ApartError if they
        cannot go by themselves.
        """
        while self._crew and not (interrupted and self._is_over()):
            for ready in wait([worker.connection for worker in self._crew], LOOK_S):
                self._hear(next(one for one in self._crew if one.connection is ready))
            self._tell()
        found = self._merged.parts
        return len(found) == len(self._parts) and all(part.finished for part in found.values())

    def _is_over(self) -> bool:
        """
        Whether the time is over in which processes say what they found until Ctrl-C.
        """
        if self._until is None:
            self._until = time.monotonic() + GRACE_S
            self._left.clear()
            self._crew = [worker for worker in self._crew if worker.part is not None]
            for worker in self._crew:
                with suppress(OSError):
                    worker.connection.send("enough")
        return time.monotonic() > self._until

    def _hear(self, worker: _Worker) -> None:
        try:
            said = worker.connection.recv()
            if isinstance(said, Progress):
                worker.progress = said
                return
            if isinstance(said, Part) and worker.part is not None:
                self._merged.add(worker.part, said, self._decisions(worker.part))
                worker.part = worker.progress = None
            elif said is None or said != self._decides:
                raise ApartError("a process cannot do what this one can")
            if not self._left:
                self._crew.remove(worker)
                return
            worker.part = self._left.pop()
            worker.connection.send(
                Order(files=self._parts[worker.part], decisions=self._decisions(worker.part), limit=self._limit)
            )
        except (EOFError, OSError):
            worker.process.join()
            raise WorkerLostError(_lost(worker, self._parts)) from None

    def _decisions(self, part: int) -> Path | None:
        return None if self._folder is None else self._folder / f"{part}.jsonl"

    def _tell(self) -> None:
        if self._work.on_progress is None:
            return
        parts = self._merged.parts
        done = float(sum(self._weights[number] for number in parts))
        files = sum(len(self._parts[number]) for number in parts)
        calls = sum(part.calls for part in parts.values())
        file = self._work.files[0].path
        for worker in self._crew:
            if worker.progress is not None and worker.part is not None:
                done += self._weights[worker.part] * (worker.progress.share or 0.0)
                files += worker.progress.number - 1
                calls += worker.progress.calls
                file = worker.progress.file
        seconds, count = time.monotonic() - self._began, len(self._work.files)
        share = min(1.0, done / max(1, sum(self._weights)))
        self._work.on_progress(Progress(file, min(files + 1, count), count, calls, seconds, share=share))


def _lost(worker: _Worker, parts: list[list[Input]]) -> str:
    code = worker.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    what = (
        "a process that judges files"
        if worker.part is None
        else f"the process that judged `{parts[worker.part][0].path}`"
    )
    return f"{what} was ended ({how}), so nothing is judged to its end; is there enough memory?"
