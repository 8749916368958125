"""
Counts files of records, tool by tool.
"""

import time

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from guardrails.core.tool import Tool
from guardrails.core.values.types import MICRO
from guardrails.offline.replay.judge import declared, sessions_of
from guardrails.offline.replay.run import seldom_collected
from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.files import Input, calls_of
from guardrails.policy.policy import Policy

from .reasons import FORMULA, ranked, reasons
from .rows import Row, rows_of
from .suggestions import Suggestion, suggestion
from .tally import Tally, spent


@dataclass(slots=True)
class Quality:
    """
    The figures of all tools, and how far the counting went.
    """

    policy: str
    """Whose `tools:` said which tools poll, change nothing or hide their failures."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    calls: int = 0
    sessions: int = 0
    longest: int = 0
    """Calls of the longest session."""
    sources: list[str] = field(default_factory=list)
    model_cost: int = 0
    """Of the model responses, micro-dollars."""
    report: Report = field(default_factory=Report)
    seconds: float = 0.0


def count(policy: Policy, calls: Iterable[RecordedCall]) -> Quality:
    """
    Returns the figures of *calls*. The *policy* says which tools poll or change nothing.
    """
    sessions, by_tool = sessions_of(calls), defaultdict[str, list[Row]](list)

    @cache
    def tool_of(name: str, read_only: bool | None, polling: bool) -> Tool:
        return declared(policy.chain.plan(name).tool, read_only, polling)

    for number, each in enumerate(sessions):
        for row in rows_of(each, number, lambda call: tool_of(call.tool, call.read_only, call.polling)):
            by_tool[row.call.tool].append(row)
    tallies = {tool: Tally(tool, rows) for tool, rows in by_tool.items()}
    quality = Quality(policy.name, tallies, sum(map(len, sessions)), len(sessions), max(map(len, sessions), default=0))
    quality.sources = sorted({calls[0].source for calls in sessions})
    quality.model_cost = spent(call.cost_usd for calls in sessions for call in calls)
    return quality


def count_files(policy: Policy, files: Sequence[Input], tell: Callable[[str], object] | None = None) -> Quality:
    """
    Returns the figures of all tools in *files*; the progress goes to *tell*.

    Raises OSError or ReaderError if a file given by name cannot be read.
    """
    report, began = Report(), time.monotonic()
    with seldom_collected():
        quality = count(policy, calls_of(files, report, tell))
    quality.report, quality.seconds = report, time.monotonic() - began
    return quality


def suggestions(quality: Quality, policy: Policy) -> list[Suggestion]:
    """
    Returns the suggestions that the figures support beyond the settings of *policy*, the busiest tools first.
    """
    busiest = sorted(quality.tallies.values(), key=lambda tally: (-tally.calls, tally.tool))
    made = (suggestion(tally, policy.chain.plan(tally.tool)) for tally in busiest)
    return [one for one in made if one is not None]


def to_dict(quality: Quality, suggested: Sequence[Suggestion]) -> dict[str, Any]:
    """
    Returns all figures for another program: shares of 1, milliseconds, dollars; the tools to redesign first stand first.
    """
    tallies = ranked(quality.tallies.values())
    return {
        **{name: getattr(quality, name) for name in ("policy", "calls", "sessions", "sources")},
        "model_cost_usd": quality.model_cost / MICRO,
        "seconds": round(quality.seconds, 3),
        **quality.report.to_dict(),
        "formula": FORMULA,
        "tools": [{**tally.to_dict(), "reasons": [str(one) for one in reasons(tally)]} for tally in tallies],
        "suggestions": [asdict(one) for one in suggested],
    }
