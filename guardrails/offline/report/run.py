"""
Counts files of records.
"""

import time

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from guardrails.offline.replay.run import seldom_collected
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.inputs import Input, calls_of
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


def count_files(policy: Policy, files: Sequence[Input], tell: Callable[[str], object] | None = None) -> Found:
    """
    Returns the figures of all tools in *files*, streaming; the progress goes to *tell*.

    Raises OSError if a file given by name cannot be read, ReaderError for zstd without a package for it.
    """
    quality = Quality(lambda name: policy.chain.plan(name).tool)
    report, began = Report(), time.monotonic()
    with seldom_collected():
        for call in calls_of(files, report, tell):
            quality.count(call)
    seconds = time.monotonic() - began
    return Found(quality, policy.name, report.notices, report.read_as, report.without, report.broken_count, seconds)
