"""
Which settings the records support: shares as evidence (the more cautious end of a 95 % Wilson interval), rules and windows
against repeats, limits of retries and of time.

`always` reaches as far as no repeat has brought anything.
"""

import math

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from guardrails.core.chain import Plan
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.retryable import Retryable
from guardrails.core.retries.shrinkage import wilson
from guardrails.offline.replay.evidence import WINDOW
from guardrails.offline.report.names import named_to_read, waits_for_a_person
from guardrails.offline.report.tally import MAX_ATTEMPT, Durations, Odds, Tally


Made = tuple[Any, str] | None
"""A setting and its evidence; None: the figures support none."""

WRONG_ALLOWED: Final = 0.05
"""Of the calls that a setting refuses, the share that may be refused wrongly."""
WRONG_BOUND: Final = 0.1
"""The same at the upper end of its interval: 35 repeats without a wrong one suffice."""
WRONG_SEEN: Final = 3
"""Calls that have to be seen before any share of them is called too large."""


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
    return odds.s == odds.n and likely(odds)


def likely(odds: Odds) -> bool:
    """
    Returns whether the calls that would be refused are nearly always pointless: few seen to be wrong, and no more than
    twice as many likely.
    """
    return odds.n > 0 and odds.n - odds.s <= WRONG_ALLOWED * odds.n and least(odds) >= 1 - WRONG_BOUND


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
    whole = Odds()
    for part in parts:
        whole.n += part.n
        whole.s += part.s
    return whole


def within(odds: Mapping[int, Odds], window: int) -> Odds:
    """
    Returns those at most *window* calls back.
    """
    return summed(part for back, part in odds.items() if back <= window)


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


WEIGHT: Final = round((1 - WRONG_ALLOWED) / WRONG_ALLOWED)
"""Right denials that one wrong one is worth."""

OWN: Final = 5
"""Repeats of its own, without a wrong one, from which on other tools may speak for a tool."""


def duplicates(tally: Tally, plan: Plan) -> Made:
    """
    Settings of the guard `duplicates` for a tool that does not poll.
    """
    guard = next((guard for guard in plan.guards if isinstance(guard, Duplicates)), None)
    if guard is None or plan.tool.repeats == "allow":
        return None
    present = within(tally.always, guard.window)
    if guard.rule == "always" and wrong(present):
        changed = others(present)
        return {"rule": "evidence", "window": WINDOW}, (
            f"{of(changed)} repeats within {_calls(guard.window)} brought something, or looked again after work"
            f" ({bound('>', least(changed))}, allowed {percent(WRONG_ALLOWED)})"
        )
    window = _clean(tally.always)
    near = within(tally.always, window)
    # What a declaration refuses as well needs no rule, and a rule that refuses more already no other.
    declared = plan.tool.repeats == "evidence" and value(tally.stable) >= value(near)
    if not right(near) or declared or (guard.rule == "always" and guard.window >= window):
        return None
    return {"rule": "always", "window": window}, _told(near, f"within {_calls(window)}")


def stable(tally: Tally, plan: Plan, peers: Odds, *, read_only: bool) -> Made:
    """
    Returns whether a tool that changes nothing gives the same result until something is changed.

    If its own repeats are few, *peers* may speak for it: those of the other tools that change nothing. If a tool does
    change something, to declare it stable would hide that from the repeats of others.
    """
    guard = next((guard for guard in plan.guards if isinstance(guard, Duplicates)), None)
    if guard is None or guard.rule == "always" or plan.tool.repeats or not read_only:
        return None
    own = tally.stable
    where = "with nothing changed in between"
    if right(own):
        return "evidence", _told(own, where)
    if own.n < OWN or own.s < own.n or not likely(peers):
        return None
    return (
        "evidence",
        f"{of(own)} repeats {where} brought nothing new; of other tools that change nothing {_told(peers, where)}",
    )


def value(odds: Odds) -> int:
    """
    Returns the value of refusing them, in right denials.
    """
    return odds.s - WEIGHT * (odds.n - odds.s)


def _clean(odds: Mapping[int, Odds]) -> int:
    """
    Returns the smallest window that holds the most repeats none of which brought something, 0 if there is none.
    """
    window = 0
    for back in sorted(odds):
        if odds[back].s < odds[back].n:
            break
        window = back
    return window


def _told(odds: Odds, where: str) -> str:
    missed = others(odds)
    return (
        f"{of(odds)} repeats {where} brought nothing new (the others: {bound('<', most(missed))}, allowed"
        f" {percent(WRONG_BOUND)})"
    )


def _calls(window: int) -> str:
    return "1 call" if window == 1 else f"{window} calls"


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


def _longer(durations: Durations, seconds: int) -> Odds:
    return Odds(durations.n, durations.above(seconds * 1000))


POLLS: Final = 0.5
"""A tool polls where more of its runs of equal results end in another one than this, surely."""
SESSIONS: Final = 3
"""In which a tool has to repeat, or to poll, before anything is concluded: calls of one session are too much alike."""
HARMLESS: Final = 0.8
"""A tool that is said or named to read is taken to where it left more results of others unchanged than this, surely."""
NAME_LENGTH: Final = 200
NO_PEERS: Final = Odds()


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


def suggestion(tally: Tally, plan: Plan, peers: Odds = NO_PEERS) -> Suggestion | None:
    """
    Returns the suggestion that the figures of a tool support beyond *plan*. Returns None if there is none.

    The *peers* are the repeats of the other tools that change nothing, with nothing changed in between.
    """
    if not tally.tool.isprintable() or not 0 < len(tally.tool) <= NAME_LENGTH:
        return None
    polling, read_only = _polling(tally, plan), _read_only(tally, plan)
    made: dict[str, Made] = {"repeats": polling, "read_only": read_only}
    often = tally.repeat_sessions >= SESSIONS
    if often and polling is None:
        # Repeats of a tool that waits are its nature.
        reads = bool(plan.tool.read_only) or read_only is not None
        made |= _repeats(tally, plan, stable(tally, plan, peers, read_only=reads))
    made |= {"retryable": retries(tally, plan) if often else None, "timeout": timeout(tally, plan)}
    found = {key: one for key, one in made.items() if one is not None}
    if not found:
        return None
    settings = {key: setting for key, (setting, _) in found.items()}
    return Suggestion(tally.tool, settings, {key: said for key, (_, said) in found.items()})


def _repeats(tally: Tally, plan: Plan, steady: Made) -> dict[str, Made]:
    """
    The one of both that refuses more; a declaration lets a smaller window of `evidence` stand beside it.
    """
    rule = duplicates(tally, plan)
    if rule is None or steady is None:
        return {"repeats": steady, "duplicates": rule}
    worth = value(within(tally.always, rule[0]["window"]))
    return {"repeats": steady} if value(tally.stable) >= worth else {"duplicates": rule}


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
        f" in {tally.poll_sessions:,} sessions ({bound('>', least(tally.polls))}, needed {percent(POLLS)}): it waits for"
        " something"
    )


def _read_only(tally: Tally, plan: Plan) -> Made:
    said = tally.said_read_only == tally.calls - tally.denied.total() > 0
    named = named_to_read(tally.tool)
    if plan.tool.read_only is not None or least(tally.harmless) <= HARMLESS or not (said or named):
        return None
    why = "recorded as read-only" if said else "named as one that reads"
    return True, (
        f"{why}, and {of(tally.harmless)} results of other tools were the same after it alone ran in between"
        f" ({bound('>', least(tally.harmless))}, needed {percent(HARMLESS)}); confirm it: no figure proves that a tool"
        " changes nothing"
    )
