"""
Counts the decision on a recorded call into the figures.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from guardrails.core.decision import Decision
from guardrails.core.values.types import Denial

from .evidence import Past, Worth
from .result import LIMITS, REPEATS, Tally


Why = Literal["changed", "volatile", "news", "known", "ended"]

WHY: Final[dict[Why, str]] = {
    "changed": "the latest identical call had another result",
    "volatile": "the latest identical call had the same result but for clocks, durations and ids",
    "news": "no identical call was among the last 20, and none of them had the same result",
    "known": "no identical call was among the last 20, but another one of them had the same result",
    "ended": "a guard had ended the session before, so nobody looked at the call",
}
"""
Each in words. A result whose text is not known, or only its beginning, counts as another one: volatile is what is proved.

The same result for other arguments is no harm if a look found nothing once more; it is harm if work was acknowledged.
"""


class Said(NamedTuple):
    """
    The word of a policy on one call.
    """

    decision: Literal["allow", "nudge", "pending", "deny"]
    code: str | None = None
    observed: tuple[str, ...] = ()
    """What guards in observe mode would have denied it for."""
    why: Why | None = None
    """Of a denial or objection that is wrong; `ended` of every call that is denied because its session is over."""
    worked: bool | None = None
    """Of these calls: whether the record has it as a success."""
    hinted: tuple[str, ...] = ()
    """What guards in observe mode would have hinted at."""


ALLOWED: Final = Said("allow")


def said_of(decision: Decision, tally: Tally, worth: Worth) -> Said:
    """
    Returns the same in short; nudges and objections in observe mode are counted.
    """
    if not decision.observed:
        return _decided(decision, tally, worth)
    denials = tuple(dict.fromkeys(one.code for one in decision.observed if isinstance(one, Denial)))
    nudges = tuple(dict.fromkeys(one.code for one in decision.observed if not isinstance(one, Denial)))
    if denials:
        count_observed(tally, denials, worth)
    return _decided(decision, tally, worth)._replace(observed=denials, hinted=nudges)


def _decided(decision: Decision, tally: Tally, worth: Worth) -> Said:
    if decision.envelope is not None:
        return Said("deny", decision.denials[0].code)
    if decision.nudges:
        _count((code for code, _ in decision.nudges), worth, tally.nudged, tally.wrong_nudges)
        # One that is claimed at once was approved first.
        return Said("pending" if decision.claim_n else "nudge", decision.nudges[0][0])
    return ALLOWED


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
    first = next((code for code in codes if _is_wrong(code, worth)), None)
    if first is not None:
        tally.wrong_observed[first] += 1
    tally.observed_second += worth == "second"
    tally.observed_later += worth == "later"


def explained(said: Said, tally: Tally, worth: Worth, past: Past, *, over: bool, further: bool) -> Said:
    """
    Returns the word *said* of the latest call of *past*, and why that is wrong, if it is. The reasons are counted.

    The session had ended before if *over*, and had refused a call since if *further*.
    """
    denied, code = said.decision == "deny", said.code or ""
    wrong = denied and not further and _is_wrong(code, worth)
    wrong_observed = any(_is_wrong(each, worth) for each in said.observed)
    lost = denied and over
    if not (wrong or wrong_observed or lost):
        return said
    why, worked = why_wrong(past, over=lost), past.worked
    if wrong:
        tally.wrong_why[why] += 1
        tally.wrong_worked[why] += worked
    if wrong_observed:
        tally.wrong_observed_why[why] += 1
        tally.wrong_observed_worked[why] += worked
    if lost:
        tally.lost[code] += 1
        tally.lost_worked[code] += worked
        tally.lost_new[code] += worked and worth == "new"
    return said._replace(why=why, worked=worked)


def _is_wrong(code: str, worth: Worth) -> bool:
    return worth == "new" and code.startswith(REPEATS)


def _count(codes: Iterable[str], worth: Worth, said: Counter[str], wrong: Counter[str]) -> None:
    """
    Add the judgement of a call that was worth so much. The judgement is *wrong* if it called a repeat a call that
    brought something.
    """
    for code in codes:
        said[code] += 1
        if _is_wrong(code, worth):
            wrong[code] += 1


def why_wrong(past: Past, *, over: bool) -> Why:
    """
    Returns the class of the latest call of *past*, which brought something; *over*: its session had ended before.
    """
    if over:
        return "ended"
    twin = past.twin()
    if twin is not None:
        return "volatile" if past.alike(twin) else "changed"
    return "known" if any(map(past.alike, range(len(past.sigs) - 1))) else "news"
