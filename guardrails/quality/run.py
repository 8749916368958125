"""
Count files of records: the shell, which reads, tells of its progress and can be interrupted.
"""

import time

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..judge.inputs import Input
from ..judge.progress import Progress, share_of
from ..judge.run import AT_ONCE, MAX_NOTICES, broken_lines, interruptible, seldom_collected
from ..policy import Policy
from ..readers import Report, open_calls
from .counting import Quality


@dataclass(slots=True)
class Found:
    """
    What was counted, and how far that went.
    """

    quality: Quality
    policy: str
    """Whose `tools:` said which tools poll, change nothing or hide their failures."""
    notices: list[str] = field(default_factory=list)
    broken_lines: int = 0
    seconds: float = 0.0
    finished: bool = True
    """False: it was interrupted; the figures are of what was read until then."""


def count_files(
    policy: Policy, files: Sequence[Input], on_progress: Callable[[Progress], object] | None = None
) -> Found:
    """
    The figures of all tools in *files*, streaming. Ctrl-C ends the work early.

    Raises OSError where a file given by name cannot be read, ReaderError for zstd without a package for it.
    """
    quality = Quality(lambda name: policy.chain.plan(name).tool)
    found = Found(quality, policy.name)
    began, sizes = time.monotonic(), [file.size for file in files]
    with interruptible() as interrupted, seldom_collected():
        for number, file in enumerate(files, 1):
            report = Report()
            try:
                calls = open_calls(file.path, report, source=file.folder)
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
            except OSError as error:
                if not file.found:
                    raise
                report.note(file.path, f"cannot be read: {error.strerror or error}")
            found.broken_lines += report.broken_count
            found.notices = [*found.notices, *report.notices, *broken_lines(report)][:MAX_NOTICES]
            if interrupted:
                found.finished = False
                break
    if quality.forgotten:
        found.notices.append(f"{quality.forgotten:,} sessions were put out of memory while others went on")
    found.seconds = time.monotonic() - began
    return found
