"""
Which limits of retries and of time the figures of a tool support.
"""

from collections.abc import Mapping
from typing import Final

from guardrails.core.engine.plan import Plan
from guardrails.core.guards.results.retryable import Retryable
from guardrails.offline.quality.names import waits_for_a_person
from guardrails.offline.quality.quantiles import Quantiles
from guardrails.offline.quality.tally import MAX_ATTEMPT, Odds, Tally

from .bounds import Made, bound, least, most, of, summed


RETRIED: Final = 5
"""Retries of one number before more of them are allowed."""
TIMED: Final = 100
"""Successes of which the duration has to be known."""
TIMEOUT_FACTOR: Final = 3
"""Times the 99th percentile of the successes' durations; 10 seconds at least, since a call that is given up may still act."""
CUT: Final = 0.05
"""A timeout stands where fewer successes take longer than this, surely."""
HOPELESS: Final = 0.5
"""And where of the calls that take longer more fail than this, surely: else there is nothing to gain."""
_STEPS_S: Final = (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600)


def retries(tally: Tally, plan: Plan) -> Made:
    """
    Returns the fewest retries beyond which they are not worth their cost, or more than now if those surely are.
    """
    guard = next((guard for guard in plan.guards if isinstance(guard, Retryable)), None)
    if guard is None:
        return None
    cost = f"a retry costs {guard.retry_cost:g} of a success"
    for enough in range(min(guard.max_retries, MAX_ATTEMPT)):
        left = _beyond(tally.by_attempt, enough)
        if most(left) < guard.retry_cost:
            which = "retries" if enough == 0 else f"retries after the first {enough}"
            said = f"{of(left)} {which} of transient failures worked ({bound('<', most(left))}; {cost})"
            return {"max_retries": enough}, said
    if guard.max_retries >= MAX_ATTEMPT:
        return None
    paying = [n for n in range(guard.max_retries + 1, MAX_ATTEMPT + 1) if _pays(tally.by_attempt.get(n), guard)]
    if not paying:
        return None
    last = paying[-1]
    further = summed(odds for n, odds in tally.by_attempt.items() if guard.max_retries < n <= last)
    said = f"{of(further)} retries after the first {guard.max_retries} worked ({bound('>', least(further))}; {cost})"
    # Each further retry is one more failure of the kind in a row.
    return {"max_retries": last, "max_same_error": max(last, guard.max_same_error)}, said


def _beyond(by_attempt: Mapping[int, Odds], enough: int) -> Odds:
    return summed(odds for attempt, odds in by_attempt.items() if attempt > enough)


def _pays(odds: Odds | None, guard: Retryable) -> bool:
    return odds is not None and odds.n >= RETRIED and least(odds) > guard.retry_cost


def timeout(tally: Tally, plan: Plan) -> Made:
    """
    Returns a limit that hardly any success has ever needed, if calls that pass it mostly fail.

    Only durations that were measured around the tool itself count, and no tool that waits for a person or polls.
    """
    worked, p99 = tally.worked_ms, tally.worked_ms.at(0.99)
    if plan.tool.timeout is not None or plan.tool.repeats == "allow" or waits_for_a_person(tally.tool):
        return None
    if p99 is None or worked.n < TIMED:
        return None
    seconds = next((step for step in _STEPS_S if step >= TIMEOUT_FACTOR * p99 / 1000), None)
    if seconds is None:
        return None
    slow, lost = _longer(worked, seconds), _longer(tally.failed_ms, seconds)
    longer = Odds(slow.s + lost.s, lost.s)
    if most(slow) >= CUT or least(longer) <= HOPELESS:
        return None
    return f"{seconds}s", (
        f"{of(longer)} calls that took longer failed ({bound('>', least(longer))}); {of(slow)} successes did"
        f" ({bound('<', most(slow))}, p99 {p99 / 1000:.3g} s)"
    )


def _longer(durations: Quantiles, seconds: int) -> Odds:
    return Odds(durations.n, durations.above(seconds * 1000))
