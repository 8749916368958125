"""
The findings, for another program.
"""

from collections.abc import Sequence
from typing import Any

from guardrails.offline.report.reasons import FORMULA, ranked, reasons
from guardrails.offline.report.suggestions import Suggestion, suggestion, summed
from guardrails.policy.policy import Policy

from .counting import Quality
from .run import Found
from .tally import Odds


def suggestions(quality: Quality, policy: Policy) -> list[Suggestion]:
    """
    Returns the suggestions that the figures support beyond the settings of *policy*, the busiest tools first.
    """
    busiest = sorted(quality.tallies.values(), key=lambda tally: (-tally.calls, tally.tool))
    plans = {tally.tool: policy.chain.plan(tally.tool) for tally in busiest}
    pool = summed(tally.stable for tally in busiest if plans[tally.tool].tool.read_only)
    made = []
    for tally in busiest:
        plan = plans[tally.tool]
        own = tally.stable if plan.tool.read_only else Odds()
        one = suggestion(tally, plan, Odds(pool.n - own.n, pool.s - own.s))
        if one is not None:
            made.append(one)
    return made


def to_dict(found: Found, suggested: Sequence[Suggestion]) -> dict[str, Any]:
    """
    Returns all figures: shares of 1, milliseconds, dollars; the tools to redesign first stand first.
    """
    quality = found.quality
    return {
        "policy": found.policy,
        "calls": quality.calls,
        "sessions": quality.sessions,
        "sources": sorted(quality.sources),
        "model_cost_usd": quality.model_cost / 1_000_000,
        "broken_lines": found.broken_lines,
        "seconds": round(found.seconds, 3),
        "read_as": found.read_as,
        "without_calls": found.without,
        "notices": found.notices,
        "formula": FORMULA,
        "tools": [
            {**tally.to_dict(), "reasons": [str(one) for one in reasons(tally)]}
            for tally in ranked(quality.tallies.values())
        ],
        "suggestions": [one.to_dict() for one in suggested],
    }
