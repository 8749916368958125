"""
Facts for a model of loops: what a session did before each of its recorded calls, and whether that call brought nothing new.
"""

import os

from collections.abc import Iterable
from typing import Any

from xxhash import xxh3_64_intdigest

from guardrails.core.guards import base
from guardrails.core.guards.loop_score import LoopScore, brings_nothing, prospect_of
from guardrails.core.state import SessionState
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.offline.replay.judge import Judge, sessions_of
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.inputs import calls_of, inputs
from guardrails.policy.policy import Policy

from .facts import DAY_MS, FOLDS, UNDATED, Fact
from .rows import Read


@base.guard
class Watch(LoopScore):
    """
    Looks at each call before it runs and when it is over, and says nothing: so what is learned from is what will be served.
    """

    seen: Any
    """By the id of a call: its prospect, and then whether it brought nothing new."""

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: base.Facts) -> None:
        self.seen[call.id] = prospect_of(call, state, facts), None

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: base.Facts) -> Any:
        if facts.entry is not None:
            self.seen[call.id] = self.seen[call.id][0], brings_nothing(facts.entry, state)
        return mine


def read_loops(paths: Iterable[str | os.PathLike[str]]) -> Read:
    """
    Returns the facts in *paths*, transcripts or records. The same answer again after work is left out: it may be wanted.

    Raises FileNotFoundError if a path is not there, OSError or ReaderError if a file cannot be read.
    """
    made, report, watch = Read(), Report(), Watch(seen={})
    files, judge, seen = inputs(paths), Judge(Policy([watch], by_name=True)), watch.seen
    for calls in sessions_of(calls_of(files, report)):
        seen.clear()
        judge.judge(calls)
        fold = xxh3_64_intdigest(f"{calls[0].source}\n{calls[0].session_id}".encode("utf-8", "replace")) % FOLDS
        for number, (at, nothing) in seen.items():
            ts_ms = calls[int(number) - 1].ts_ms
            if nothing is not None and not (nothing and at.old):
                made.facts.add(Fact(UNDATED if ts_ms is None else ts_ms // DAY_MS, fold, at), 1, nothing)
    made.files, made.notices = len(files) - len(report.without), report.notices
    return made
