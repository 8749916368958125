"""
Which settings the records support: shares as evidence (the more cautious end of a 95 % Wilson interval).

`always` reaches as far as no repeat has brought anything.
"""

import math

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from guardrails.core.chain import Plan
from guardrails.core.guards.base import Guard
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.retryable import Retryable
from guardrails.core.retries.shrinkage import wilson
from guardrails.offline.replay.evidence import WINDOW

from .names import waits_for_a_person
from .tally import MAX_ATTEMPT, Odds, Tally, quantile


G = TypeVar("G", bound=Guard)
Made = tuple[Any, str] | None
"""A setting and its evidence; None: the figures support none."""

WRONG_ALLOWED: Final = 0.05
"""Of the calls that a setting refuses, the share that may be refused wrongly."""
WRONG_BOUND: Final = 0.1
"""The same at the upper end of its interval: 35 repeats without a wrong one suffice."""
WRONG_SEEN: Final = 3
"""Calls that have to be seen before any share of them is called too large."""
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
POLLS: Final = 0.5
"""A tool polls where more of its runs of equal results end in another one than this, surely."""
SESSIONS: Final = 3
"""In which a tool has to repeat, or to poll, before anything is concluded: calls of one session are too much alike."""
NAME_LENGTH: Final = 200
_STEPS_S: Final = (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600)


def least(odds: Odds) -> float:
    """
    Returns the share that is surely reached.
    """
    return wilson(odds.count)[0]


def most(odds: Odds) -> float:
    """
    Returns the share that is surely not passed.
    """
    return wilson(odds.count)[1]


def right(odds: Odds) -> bool:
    """
    Returns whether what would be refused is pointless: none of it was seen to be wrong, and few are likely to be.

    One call that brought news outweighs any number of others. A policy that was made of recorded days must not refuse
    the honest work of those days.
    """
    return 0 < odds.n == odds.s and least(odds) >= 1 - WRONG_BOUND


def wrong(odds: Odds) -> bool:
    """
    Returns whether surely more would be refused wrongly than is allowed.
    """
    missed = others(odds)
    return missed.s >= WRONG_SEEN and least(missed) > WRONG_ALLOWED


def others(odds: Odds) -> Odds:
    """
    Returns those that came out otherwise.
    """
    return Odds(odds.n, odds.n - odds.s)


def summed(parts: Iterable[Odds]) -> Odds:
    """
    Returns all of *parts* together.
    """
    told = list(parts)
    return Odds(sum(part.n for part in told), sum(part.s for part in told))


def of(odds: Odds) -> str:
    """
    Returns `7 of 20`.
    """
    return f"{odds.s:,} of {odds.n:,}"


def bound(sign: str, share: float) -> str:
    """
    Returns a bound in words, rounded to the side that promises less; *sign* is `>` or `<`.
    """
    per_mille = math.floor(share * 1000) if sign == ">" else math.ceil(share * 1000)
    return f"95 % sure {sign} {per_mille / 10:g} %"


def percent(share: float) -> str:
    """
    Returns a share of 1 in whole per cent.
    """
    return f"{100 * share:.0f} %"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """
    Settings for one tool, each with its evidence.
    """

    tool: str
    settings: dict[str, Any]
    """As an entry of a policy's `tools:` has them."""
    evidence: dict[str, str]
    """By the key of the setting."""

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        return {"tool": self.tool, "settings": self.settings, "evidence": self.evidence}


def suggestion(tally: Tally, plan: Plan) -> Suggestion | None:
    """
    Returns the suggestion that the figures of a tool support beyond *plan*. Returns None if there is none.
    """
    if not tally.tool.isprintable() or not 0 < len(tally.tool) <= NAME_LENGTH:
        return None
    found: dict[str, tuple[Any, str]] = {}
    for key, propose in _SETTINGS:
        # Repeats of a tool that waits are its nature, and what is declared as steady needs no rule.
        made = None if key in found or (key == "duplicates" and "repeats" in found) else propose(tally, plan)
        if made is not None:
            found[key] = made
    if not found:
        return None
    settings = {key: setting for key, (setting, _) in found.items()}
    return Suggestion(tally.tool, settings, {key: said for key, (_, said) in found.items()})


def waits(tally: Tally) -> bool:
    """
    Returns whether the figures say that a tool is asked again until something has happened.
    """
    return least(tally.polls) > POLLS and tally.poll_sessions >= SESSIONS


def _polling(tally: Tally, plan: Plan) -> Made:
    if plan.tool.repeats == "allow" or not waits(tally):
        return None
    return "allow", (
        f"{of(tally.polls)} times the same call brought something after equal results with nothing changed in between,"
        f" in {tally.poll_sessions:,} sessions ({bound('>', least(tally.polls))}, needed {percent(POLLS)}): it waits for something"
    )


def _stable(tally: Tally, plan: Plan) -> Made:
    """
    A tool that changes nothing gives the same result until something is changed.

    If a tool does change something, to declare it stable would hide that from the repeats of others.
    """
    guard = _guard(plan, Duplicates)
    unknown = guard is None or guard.rule == "always" or plan.tool.repeats or tally.repeat_sessions < SESSIONS
    if unknown or not plan.tool.read_only or not right(tally.stable):
        return None
    return "evidence", _told(tally.stable, "with nothing changed in between")


def _duplicates(tally: Tally, plan: Plan) -> Made:
    guard = _guard(plan, Duplicates)
    if guard is None or plan.tool.repeats == "allow" or tally.repeat_sessions < SESSIONS:
        return None
    present = _within(tally.always, guard.window)
    if guard.rule == "always" and wrong(present):
        changed = others(present)
        return {"rule": "evidence", "window": WINDOW}, (
            f"{of(changed)} repeats within {_calls(guard.window)} brought something, or looked again after work"
            f" ({bound('>', least(changed))}, allowed {percent(WRONG_ALLOWED)})"
        )
    # The most repeats none of which brought something.
    news = min((back for back, odds in tally.always.items() if odds.s < odds.n), default=math.inf)
    window = max((back for back in tally.always if back < news), default=0)
    near = _within(tally.always, window)
    if not right(near) or plan.tool.repeats == "evidence" or (guard.rule == "always" and guard.window >= window):
        return None
    return {"rule": "always", "window": window}, _told(near, f"within {_calls(window)}")


def _retries(tally: Tally, plan: Plan) -> Made:
    """
    The fewest retries beyond which they are not worth their cost, or more than now if those surely are.
    """
    guard = _guard(plan, Retryable)
    if guard is None or tally.repeat_sessions < SESSIONS:
        return None
    cost = f"a retry costs {guard.retry_cost:g} of a success"
    for enough in range(min(guard.max_retries, MAX_ATTEMPT)):
        left = summed(odds for attempt, odds in tally.by_attempt.items() if attempt > enough)
        if most(left) < guard.retry_cost:
            which = "retries" if enough == 0 else f"retries after the first {enough}"
            said = f"{of(left)} {which} of transient failures worked ({bound('<', most(left))}; {cost})"
            return {"max_retries": enough}, said
    more = {n: odds for n, odds in tally.by_attempt.items() if n > guard.max_retries}
    paying = [n for n, odds in more.items() if odds.n >= RETRIED and least(odds) > guard.retry_cost]
    if not paying:
        return None
    last = max(paying)
    further = summed(odds for n, odds in more.items() if n <= last)
    said = f"{of(further)} retries after the first {guard.max_retries} worked ({bound('>', least(further))}; {cost})"
    # Each further retry is one more failure of the kind in a row.
    return {"max_retries": last, "max_same_error": max(last, guard.max_same_error)}, said


def _timeout(tally: Tally, plan: Plan) -> Made:
    """
    A limit that hardly any success has ever needed, if calls that pass it mostly fail.

    Only durations that were measured around the tool itself count, and no tool that waits for a person or polls.
    """
    p99 = quantile(tally.worked_ms, 0.99)
    if plan.tool.timeout is not None or plan.tool.repeats == "allow" or waits_for_a_person(tally.tool):
        return None
    if p99 is None or len(tally.worked_ms) < TIMED:
        return None
    seconds = next((step for step in _STEPS_S if step >= TIMEOUT_FACTOR * p99 / 1000), math.inf)
    slow, lost = (Odds.of(took > seconds * 1000 for took in ms) for ms in (tally.worked_ms, tally.failed_ms))
    longer = Odds(slow.s + lost.s, lost.s)
    if most(slow) >= CUT or least(longer) <= HOPELESS:
        return None
    return f"{seconds}s", (
        f"{of(longer)} calls that took longer failed ({bound('>', least(longer))}); {of(slow)} successes did"
        f" ({bound('<', most(slow))}, p99 {p99 / 1000:.3g} s)"
    )


_SETTINGS: Final[tuple[tuple[str, Callable[[Tally, Plan], Made]], ...]] = (
    ("repeats", _polling),
    ("repeats", _stable),
    ("duplicates", _duplicates),
    ("retryable", _retries),
    ("timeout", _timeout),
)


def _guard(plan: Plan, kind: type[G]) -> G | None:
    return next((guard for guard in plan.guards if isinstance(guard, kind)), None)


def _within(odds: Mapping[int, Odds], window: int) -> Odds:
    return summed(part for back, part in odds.items() if back <= window)


def _told(odds: Odds, where: str) -> str:
    missed = bound("<", most(others(odds)))
    return f"{of(odds)} repeats {where} brought nothing new (the others: {missed}, allowed {percent(WRONG_BOUND)})"


def _calls(window: int) -> str:
    return "1 call" if window == 1 else f"{window} calls"
