"""
Facts for a model of loops: what a session did before each of its recorded calls, and whether that call brought nothing new.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from guardrails.core.guards import base
from guardrails.core.guards.loop_score import LoopScore, brings_nothing, prospect_of
from guardrails.core.state import SessionState
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import RecordedCall
from guardrails.policy.policy import Policy

from .facts import FOLDS, Fact, day_of


@base.guard
class Watch(LoopScore):
    """
    Looks at each call before it runs and when it is over, and says nothing: so what is learned from is what will be served.
    """

    seen: Any
    """By the id of a call: its prospect, and then whether it brought nothing new."""

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: base.Facts) -> None:
        self.seen[call.id] = prospect_of(call, state), None

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: base.Facts) -> None:
        if facts.entry is not None:
            self.seen[call.id] = self.seen[call.id][0], brings_nothing(facts.entry, state)


def loop_facts(sessions: Iterable[tuple[int, list[RecordedCall]]]) -> Iterator[tuple[Fact, bool]]:
    """
    Returns a fact for each call of *sessions*, each with its number, that is over, and whether it brought nothing new. The same
    answer again after work is left out: it may be wanted.
    """
    for session, calls in sessions:
        watch = Watch(seen={})
        Judge(Policy([watch], by_name=True)).judge(calls)
        for call, (at, nothing) in zip(calls, watch.seen.values(), strict=True):
            if nothing is not None and not (nothing and at.same.endswith("old")):
                yield Fact(day_of(call.ts_ms), session % FOLDS, at), nothing
