"""
Why denials were wrong, as lists for a person.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from guardrails.offline.judge.result import Tally
from guardrails.offline.judge.why import WHY


LEGEND = (
    "Why wrong, with those that are recorded as a success: "
    + "; ".join(f"{name}: {words}" for name, words in WHY.items())
    + ". Lost: calls that were denied because their session was over."
)


def wrong_lists(tally: Tally) -> Iterator[list[str]]:
    """
    The wrong denials of *tally* by what the calls brought, and the calls lost after an end; nothing where there are none.
    """
    if tally.wrong:
        yield _listed("wrong because", tally.wrong_why, tally.wrong_worked)
    if tally.wrong_observed:
        yield _listed("observed wrongly because", tally.wrong_observed_why, tally.wrong_observed_worked)
    if tally.lost:
        worked, new = tally.lost_worked.total(), tally.lost_new.total()
        yield [f"lost after the end {tally.lost.total():,} ({worked:,} worked, {new:,} of them no repeat)"]


def wrong_figures(one: Tally, other: Tally) -> Iterator[tuple[str, Callable[[Tally], float]]]:
    """
    The same as (name, figure) of what is in *one* or the *other*.
    """
    for why in WHY:
        if one.wrong_why[why] or other.wrong_why[why]:
            yield f"  {why}", lambda t, why=why: t.wrong_why[why]  # type: ignore[misc]
    if one.lost or other.lost:
        yield "lost after the end", lambda t: t.lost.total()
        yield "  of them worked", lambda t: t.lost_worked.total()


def _listed(name: str, why: Counter[str], worked: Counter[str]) -> list[str]:
    each = [f"{reason} {count:,} ({worked[reason]:,} worked)" for reason, count in why.most_common()]
    return [f"{name}: {each[0]}", *each[1:]]
