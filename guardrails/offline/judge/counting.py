"""
What a decision says of a recorded call, and how it adds to the figures.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from guardrails.core.engine.decision import Decision
from guardrails.core.values.types import Denial

from .evidence import Worth
from .result import LIMITS, REPEATS, Tally


class Said(NamedTuple):
    """
    What a policy says of one call.
    """

    decision: Literal["allow", "nudge", "pending", "deny"]
    code: str | None = None
    observed: tuple[str, ...] = ()
    """What guards in observe mode would have denied it for."""


ALLOWED: Final = Said("allow")


def said_of(decision: Decision, tally: Tally, worth: Worth) -> Said:
    """
    The same in short; nudges and objections in observe mode are counted.
    """
    observed = tuple(dict.fromkeys(one.code for one in decision.observed if isinstance(one, Denial)))
    if observed:
        count_observed(tally, observed, worth)
    if decision.envelope is not None:
        return Said("deny", decision.denials[0].code, observed)
    if decision.nudges:
        _count((code for code, _ in decision.nudges), worth, tally.nudged, tally.wrong_nudges)
        # One that is claimed at once was approved first.
        return Said("pending" if decision.claim_n else "nudge", decision.nudges[0][0], observed)
    return Said("allow", None, observed) if observed else ALLOWED


def count_denied(tally: Tally, code: str, worth: Worth, *, further: bool) -> None:
    """
    A denied call; *further*: the session was exhausted, and this is not the first call that it refused since.
    """
    if further:
        tally.after_exhaustion[code] += 1
    else:
        _count((code,), worth, tally.denied, tally.wrong)
        if code.startswith(LIMITS):
            tally.limit_stops[code] += 1
        elif worth == "unknown" and code.startswith(REPEATS):
            tally.unknown[code] += 1
    tally.stopped_second += worth == "second"
    tally.stopped_later += worth == "later"


def count_denied_without_cap(tally: Tally, code: str, worth: Worth, *, further: bool) -> None:
    """
    A call that is denied with the cap on refused turns off.
    """
    if further:
        tally.after_exhaustion_without_cap[code] += 1
    else:
        _count((code,), worth, tally.denied_without_cap, tally.wrong_without_cap)
    tally.stopped_second_without_cap += worth == "second"
    tally.stopped_later_without_cap += worth == "later"


def count_observed(tally: Tally, codes: Sequence[str], worth: Worth) -> None:
    """
    A call that guards in observe mode would have denied. Each is counted; that it was wrong, once: enforced, the first would
    have denied it, and the others not been heard.
    """
    tally.observed.update(codes)
    first = next((code for code in codes if code.startswith(REPEATS)), None)
    if worth == "new" and first is not None:
        tally.wrong_observed[first] += 1
    tally.observed_second += worth == "second"
    tally.observed_later += worth == "later"


def _count(codes: Iterable[str], worth: Worth, said: Counter[str], wrong: Counter[str]) -> None:
    """
    Add what was said of a call that was worth so much; it is *wrong* where it was said to repeat and brought something.
    """
    for code in codes:
        said[code] += 1
        if worth == "new" and code.startswith(REPEATS):
            wrong[code] += 1
