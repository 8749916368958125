"""
Which rule and window against repeats the figures of a tool support.

`always` reaches as far as no repeat has brought anything. Under `evidence` a wrong denial weighs as much as 19 right
ones. A window so reaches as far as at most one denial in 20 is wrong.
"""

from collections.abc import Mapping
from typing import Final

from guardrails.core.engine.plan import Plan
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.loops import Loops
from guardrails.offline.judge.evidence import WINDOW
from guardrails.offline.quality.rules import PAIR
from guardrails.offline.quality.tally import Odds, Tally

from .bounds import (
    WRONG_ALLOWED,
    WRONG_BOUND,
    Made,
    bound,
    least,
    likely,
    most,
    of,
    others,
    percent,
    right,
    within,
    wrong,
)


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
    return _of_always(tally, guard) if guard.rule == "always" else _of_evidence(tally, guard, plan)


def loops(plan: Plan, rule: Made) -> Made:
    """
    Returns the settings that go with a smaller window of the rule `evidence`: else `loops` refuses the calls that lie
    outside it.
    """
    guard = next((guard for guard in plan.guards if isinstance(guard, Loops)), None)
    if guard is None or rule is None or rule[0]["rule"] != "evidence" or rule[0]["window"] == WINDOW:
        return None
    deny = guard.identical["deny"]
    if deny is None or deny > PAIR:
        return None
    return {"identical": {"deny": PAIR + 1}}, "the same figures: two equal results outside that window prove too little"


def stable(tally: Tally, plan: Plan, peers: Odds, *, read_only: bool) -> Made:
    """
    Returns whether a tool that changes nothing gives the same result until something is changed.

    If its own repeats are few, *peers* may speak for it: those of the other tools that change nothing. If a tool does
    change something, to declare it stable would hide that from the repeats of others.
    """
    guard = next((guard for guard in plan.guards if isinstance(guard, Duplicates)), None)
    if (
        guard is None
        or guard.rule == "always"
        or plan.tool.repeats == "allow"
        or plan.tool.repeats == "evidence"
        or not read_only
    ):
        return None
    own = tally.stable
    where = "with nothing changed in between"
    if right(own):
        return True, _told(own, where)
    if own.n < OWN or own.s < own.n or not likely(peers):
        return None
    return (
        True,
        f"{of(own)} repeats {where} brought nothing new; of other tools that change nothing {_told(peers, where)}",
    )


def value(odds: Odds) -> int:
    """
    Returns the value of refusing them, in right denials.
    """
    return odds.s - WEIGHT * (odds.n - odds.s)


def _of_evidence(tally: Tally, guard: Duplicates, plan: Plan) -> Made:
    window = _clean(tally.always)
    near = within(tally.always, window)
    if right(near) and not (plan.tool.repeats == "evidence" and value(tally.stable) >= value(near)):
        return {"rule": "always", "window": window}, _told(near, f"within {_calls(window)}")
    return _narrower(tally, guard.window)


def _of_always(tally: Tally, guard: Duplicates) -> Made:
    present = within(tally.always, guard.window)
    if wrong(present):
        window = _clean(tally.always)
        near = within(tally.always, window)
        if window < guard.window and right(near):
            return {
                "rule": "always",
                "window": window,
            }, f"{_refused(present, guard.window)}; {_told(near, _near(window))}"
        narrower = _narrower(tally, WINDOW)
        fewer = {"rule": "evidence", "window": WINDOW} if narrower is None else narrower[0]
        return fewer, f"{_refused(present, guard.window)}: `always` would refuse them wrongly"
    window = _clean(tally.always, guard.window)
    further = within(tally.always, window, after=guard.window)
    if window > guard.window and right(further):
        return {"rule": "always", "window": window}, _told(further, f"{guard.window + 1} to {window} calls back")
    return None


def _narrower(tally: Tally, window: int) -> Made:
    """
    A smaller window for the rule `evidence`, if equal results that are further apart prove too little.
    """
    near = _widest(tally.evidence, PAIR, most=window)
    beyond = within(tally.evidence, window, after=near)
    if not wrong(beyond):
        return None
    changed = others(beyond)
    return {"rule": "evidence", "window": near}, (
        f"{of(changed)} calls whose last two results, more than {_calls(near)} back, were equal brought something"
        f" ({bound('>', least(changed))}, allowed {percent(WRONG_ALLOWED)})"
    )


def _clean(odds: Mapping[int, Odds], after: int = 0) -> int:
    """
    Returns the smallest window that holds the most repeats, *after* if there is none. No repeat in it that is more than
    *after* calls back brought something.
    """
    window = after
    for back in range(after + 1, WINDOW + 1):
        part = within(odds, back, after=back - 1)
        if part.s < part.n:
            break
        window = back if part.n else window
    return window


def _widest(odds: Mapping[int, Odds], first: int, most: int = WINDOW) -> int:
    """
    The window from *first* to *most* that is worth the most; of equal ones the smallest.
    """
    return max(range(first, most + 1), key=lambda window: (value(within(odds, window)), -window))


def _told(odds: Odds, where: str) -> str:
    missed = others(odds)
    return (
        f"{of(odds)} repeats {where} brought nothing new (the others: {bound('<', most(missed))}, allowed"
        f" {percent(WRONG_BOUND)})"
    )


def _refused(odds: Odds, window: int) -> str:
    missed = others(odds)
    return (
        f"{of(missed)} repeats within {_calls(window)} brought something, or looked again after work ({bound('>', least(missed))}, allowed"
        f" {percent(WRONG_ALLOWED)})"
    )


def _near(window: int) -> str:
    return f"within {_calls(window)}"


def _calls(window: int) -> str:
    return "1 call" if window == 1 else f"{window} calls"
