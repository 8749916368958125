"""
Judges policies over files: reads, judges, and keeps the data needed to go on after an interruption.
"""

import gc
import time

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from guardrails.offline.judge.judgement import Judge
from guardrails.offline.judge.result import Judgement
from guardrails.offline.readers import Copies, ReaderError, RecordedCall, Report, open_calls
from guardrails.policy.policy import Policy

from .checkpoint import Position, check_decisions, check_same, load, packed_tracks, save, take_over_copies
from .decisions import Decisions
from .inputs import Input, put_out_told
from .interrupts import interruptible
from .progress import Progress, share_of
from .spill import OPEN, SpillingTracks


AT_ONCE: Final = 256
"""Calls between two looks at the clock and for Ctrl-C."""
NAMED: Final = 20
"""Broken lines of one file that a notice names."""
SAVED_S: Final = 60.0
"""Seconds between two checkpoints while the work goes on."""
MAX_NOTICES: Final = 1_000


@dataclass(slots=True)
class Work:
    """
    The work to judge, and its settings.
    """

    policies: Sequence[Policy]
    """One, or two to be compared."""
    files: Sequence[Input]
    decisions: Path | None = None
    """Where to write what the first policy says of each call, as JSON lines."""
    checkpoint: Path | None = None
    """Where to leave what is needed to go on; if it is there, the work goes on from it."""
    limit: int = OPEN
    """Sessions kept in memory, of all policies together."""
    on_progress: Callable[[Progress], object] | None = None


def judge_files(work: Work) -> list[Judgement]:
    """
    Returns one judgement for each policy. Ctrl-C ends the work early: then `finished` is false.

    Raises OSError or ReaderError if a file given by name cannot be read, CheckpointError if the checkpoint does not
    fit.
    """
    with ExitStack() as stack:
        tracks = [stack.enter_context(SpillingTracks(work.limit // len(work.policies))) for _ in work.policies]
        run = Run(work, tracks)
        run.take_over()
        if work.decisions is not None:
            run.decisions = stack.enter_context(Decisions(work.decisions, run.position.written))
        interrupted = stack.enter_context(interruptible())
        stack.enter_context(seldom_collected())
        return run.judge_all(interrupted)


class Run:
    """
    The work while it is done.
    """

    def __init__(self, work: Work, tracks: Sequence[SpillingTracks]) -> None:
        self.work = work
        self.tracks = tracks
        self.judges = [Judge(policy, kept) for policy, kept in zip(work.policies, tracks, strict=True)]
        self.decisions: Decisions | None = None
        self.position = Position(
            policies=[decides(policy) for policy in work.policies],
            files=[(file.path, file.size) for file in work.files],
            decisions=work.decisions is not None,
        )
        self.report = Report()
        """Of the file that is being read."""
        self.copies = Copies()
        self.calls = 0
        self._began = self._saved = time.monotonic()
        self._before = 0.0

    def take_over(self) -> None:
        """
        Go on from the checkpoint, if it is there.
        """
        path = self.work.checkpoint
        if path is None or not path.exists():
            return
        position, figures = load(path)
        check_same(path, position, self.position.policies, self.position.files)
        check_decisions(path, position, self.work.decisions)
        take_over_copies(path, self.copies)
        position.files = self.position.files
        self.position = position
        for side, (judge, kept, known) in enumerate(zip(self.judges, self.tracks, figures, strict=True)):
            judge.take_over(known)
            kept.add_packed(packed_tracks(path, side))
        self._before = self._share(0) or 0.0

    def judge_all(self, interrupted: list[bool]) -> list[Judgement]:
        """
        Returns all files, or those until Ctrl-C.
        """
        finished = self.judge_files(interrupted)
        if finished:
            self.judge_rest()
        checkpoint = self.work.checkpoint
        if checkpoint is not None:
            if finished:
                checkpoint.unlink(missing_ok=True)
            else:
                self._save(checkpoint)
        return self.judgements(finished=finished)

    def judge_files(self, interrupted: Sequence[bool]) -> bool:
        """
        Returns the result of all files without the calls that wait for a result, and whether they came to their end.
        """
        return all(
            not interrupted and self._judge_file(file, interrupted) for file in self.work.files[self.position.done :]
        )

    def judge_rest(self) -> None:
        """
        The calls for which no result came.
        """
        rest = self.copies.rest()
        while self._judge_some(rest):
            pass

    def _judge_file(self, file: Input, interrupted: Sequence[bool]) -> bool:
        position, report = self.position, Report()
        self.report = report
        read = open_calls(file.path, report, source=file.folder, rotated=file.rotated)
        try:
            for _ in islice(read, position.calls):
                pass
            calls = self.copies.once(read, position.calls)
            while self._judge_some(calls):
                self._tell(file)
                if interrupted:
                    return False
        except (OSError, ReaderError) as error:
            if not file.found:
                raise
            report.note(file.path, f"cannot be read: {why(error)}")
            report.gave_none(file.path, f"cannot be read: {why(error)}")
        position.done += 1
        position.calls = 0
        position.broken += report.broken_count
        position.notices = [*position.notices, *report.notices, *broken_lines(report)][:MAX_NOTICES]
        position.read_as |= report.read_as
        position.without |= report.without
        self.report = Report()
        self._tell(file)
        return True

    def _judge_some(self, calls: Iterator[RecordedCall]) -> bool:
        """
        The next calls; whether there may be more.
        """
        count = 0
        if self.decisions is None and len(self.judges) == 1:
            judge = self.judges[0].judge
            for call in islice(calls, AT_ONCE):
                judge(call)
                count += 1
        else:
            for call in islice(calls, AT_ONCE):
                said = [judge.judge(call) for judge in self.judges]
                if self.decisions is not None:
                    self.decisions.add(call, said[0])
                count += 1
        self.position.calls = self.copies.read
        self.calls += count
        return count == AT_ONCE

    def _tell(self, file: Input) -> None:
        now = time.monotonic()
        if self.work.on_progress is not None:
            done, files = self.position.done, len(self.work.files)
            share = self._share(self.report.read)
            seconds = now - self._began
            told = Progress(
                file.path, min(done + 1, files), files, self.calls, seconds, share=share, before=self._before
            )
            self.work.on_progress(told)
        if self.work.checkpoint is not None and now - self._saved > SAVED_S:
            self._save(self.work.checkpoint)
            self._saved = time.monotonic()

    def _share(self, read: int) -> float | None:
        return share_of([size for _, size in self.position.files], self.position.done, read)

    def _save(self, path: Path) -> None:
        position = self.position
        if self.decisions is not None:
            position.written = self.decisions.flush()
        timed = replace(position, seconds=position.seconds + time.monotonic() - self._began)
        save(path, timed, [judge.to_dict() for judge in self.judges], self.tracks, self.copies)

    def judgements(self, *, finished: bool) -> list[Judgement]:
        """
        Returns the figures so far, for each policy.
        """
        position, report = self.position, self.report
        made = []
        for judge in self.judges:
            judgement = judge.judgement()
            judgement.notices += [
                *self.copies.notices(),
                *position.notices,
                *report.notices,
                *broken_lines(report),
            ]
            if judgement.spilled_sessions:
                judgement.notices.append(put_out_told(judgement.spilled_sessions))
            judgement.read_as = position.read_as | report.read_as
            judgement.without = position.without
            judgement.broken_lines = position.broken + report.broken_count
            judgement.seconds = position.seconds + time.monotonic() - self._began
            judgement.finished = finished
            made.append(judgement)
        return made


def decides(policy: Policy) -> str:
    """
    Returns all of *policy* that decides, as text.
    """
    chain = policy.chain
    return "\n".join([str(chain), chain.mode, chain.on_error, repr(chain.rules), repr(policy.prices)])


def why(error: Exception) -> str:
    """
    Returns why a file cannot be read, without its name.
    """
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def broken_lines(report: Report) -> list[str]:
    """
    Returns the broken lines of one file, named as far as there is room.
    """
    if not report.broken:
        return []
    file = report.broken[0][0]
    lines = ", ".join(str(line) for _, line in report.broken[:NAMED])
    more = f" and {report.broken_count - NAMED:,} more" if report.broken_count > NAMED else ""
    return [f"`{file}`: broken line{'s' if report.broken_count > 1 else ''} {lines}{more}"]


@contextmanager
def seldom_collected() -> Iterator[None]:
    """
    Let the collector of cycles look seldom: open sessions are many objects, and there are no cycles among them.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)
    try:
        yield
    finally:
        # What is new goes among the old without being looked at, which would take a twentieth of the whole time.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*before)
