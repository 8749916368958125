"""
What a decision says of a recorded call, and how it adds to the figures.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from ..decide import Decision
from .evidence import Worth
from .result import LIMITS, REPEATS, Tally


class Said(NamedTuple):
    """
    What a policy says of one call.
    """

    decision: Literal["allow", "nudge", "deny"]
    code: str | None = None
    observed: tuple[str, ...] = ()
    """What guards in observe mode would have denied it for."""


ALLOWED: Final = Said("allow")


def said_of(decision: Decision, tally: Tally, worth: Worth) -> Said:
    """
    The same in short; nudges and objections in observe mode are counted.
    """
    observed = tuple(dict.fromkeys(denial.code for denial in decision.observed))
    if observed:
        count_observed(tally, observed, worth)
    if decision.envelope is not None:
        return Said("deny", decision.denials[0].code, observed)
    if decision.nudges:
        for code, _ in decision.nudges:
            tally.nudged[code] += 1
            if worth == "new" and code.startswith(REPEATS):
                tally.wrong_nudges[code] += 1
        return Said("nudge", decision.nudges[0][0], observed)
    return Said("allow", None, observed) if observed else ALLOWED


def count_denied(tally: Tally, code: str, worth: Worth, *, further: bool) -> None:
    """
    A denied call; *further*: the session was exhausted, and this is not the first call that it refused since.
    """
    if further:
        tally.after_exhaustion[code] += 1
    else:
        tally.denied[code] += 1
        if code.startswith(REPEATS):
            if worth == "new":
                tally.wrong[code] += 1
            elif worth == "unknown":
                tally.unknown[code] += 1
        elif code.startswith(LIMITS):
            tally.limit_stops[code] += 1
    if worth == "second":
        tally.stopped_second += 1
    elif worth == "later":
        tally.stopped_later += 1


def count_denied_without_cap(tally: Tally, code: str, worth: Worth, *, further: bool) -> None:
    """
    A call that is denied with the cap on refused turns off.
    """
    if further:
        tally.after_exhaustion_without_cap[code] += 1
    else:
        tally.denied_without_cap[code] += 1
        if worth == "new" and code.startswith(REPEATS):
            tally.wrong_without_cap[code] += 1
    if worth == "second":
        tally.stopped_second_without_cap += 1
    elif worth == "later":
        tally.stopped_later_without_cap += 1


def count_observed(tally: Tally, codes: Iterable[str], worth: Worth) -> None:
    """
    A call that guards in observe mode would have denied.
    """
    for code in codes:
        tally.observed[code] += 1
        if worth == "new" and code.startswith(REPEATS):
            tally.wrong_observed[code] += 1
    if worth == "second":
        tally.observed_second += 1
    elif worth == "later":
        tally.observed_later += 1
