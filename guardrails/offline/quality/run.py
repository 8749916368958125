"""
Count files of records: the shell, which reads, tells of its progress and can be interrupted.
"""

import time

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from guardrails.offline.judge.files.inputs import Input, put_out_told
from guardrails.offline.judge.files.interrupts import interruptible
from guardrails.offline.judge.files.progress import Progress, share_of
from guardrails.offline.judge.files.run import AT_ONCE, MAX_NOTICES, broken_lines, seldom_collected, why
from guardrails.offline.readers import Copies, ReaderError, Report, open_calls
from guardrails.policy.policy import Policy

from .counting import Quality


@dataclass(slots=True)
class Found:
    """
    The counts, and how far the counting went.
    """

    quality: Quality
    policy: str
    """Whose `tools:` said which tools poll, change nothing or hide their failures."""
    notices: list[str] = field(default_factory=list)
    read_as: dict[str, str] = field(default_factory=dict)
    """The format that each file was read as that gave calls."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""
    broken_lines: int = 0
    seconds: float = 0.0
    finished: bool = True
    """False: it was interrupted; the figures are of what was read until then."""


def count_files(
    policy: Policy, files: Sequence[Input], on_progress: Callable[[Progress], object] | None = None
) -> Found:
    """
    Returns the figures of all tools in *files*, streaming. Ctrl-C ends the work early.

    Raises OSError if a file given by name cannot be read, ReaderError for zstd without a package for it.
    """
    quality = Quality(lambda name: policy.chain.plan(name).tool)
    found, copies = Found(quality, policy.name), Copies()
    began, sizes = time.monotonic(), [file.size for file in files]
    with interruptible() as interrupted, seldom_collected():
        for number, file in enumerate(files, 1):
            report = Report()
            try:
                calls = copies.once(open_calls(file.path, report, source=file.folder, rotated=file.rotated))
                while not interrupted:
                    before = quality.calls
                    for call in islice(calls, AT_ONCE):
                        quality.count(call)
                    if on_progress is not None:
                        seconds = time.monotonic() - began
                        share = share_of(sizes, number - 1, report.read)
                        on_progress(Progress(file.path, number, len(files), quality.calls, seconds, share))
                    if quality.calls - before < AT_ONCE:
                        break
            except (OSError, ReaderError) as error:
                if not file.found:
                    raise
                report.note(file.path, f"cannot be read: {why(error)}")
                report.gave_none(file.path, f"cannot be read: {why(error)}")
            found.read_as |= report.read_as
            found.without |= report.without
            found.broken_lines += report.broken_count
            found.notices = [*found.notices, *report.notices, *broken_lines(report)][:MAX_NOTICES]
            if interrupted:
                found.finished = False
                break
        for call in copies.rest():
            quality.count(call)
    if quality.forgotten:
        found.notices.append(put_out_told(quality.forgotten))
    found.notices[:0] = copies.notices()
    found.seconds = time.monotonic() - began
    return found
