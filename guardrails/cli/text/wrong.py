"""
Which denials were wrong, and why, as lists for a person; and what to do next.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from guardrails.offline.figures import plural
from guardrails.offline.judge.counting import WHY
from guardrails.offline.judge.result import Judgement, Stop, Tally

from .printing import heading, paragraph


SHOWN: Final = 10
"""Refused calls that are shown one by one."""

LEGEND = (
    "Why wrong, with those that are recorded as a success: "
    + "; ".join(f"{name}: {words}" for name, words in WHY.items())
    + ". Lost: calls that were denied because their session was over."
)


def wrong_lists(tally: Tally) -> Iterator[list[str]]:
    """
    The wrong denials of *tally* by what the calls brought, and the calls lost after an end; nothing if there are none.
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


def harmed(tally: Tally) -> int:
    """
    Calls that were denied and were no pointless repeat, those after the end of a session too.
    """
    return tally.denials + tally.after_exhaustion.total() - tally.stopped_second - tally.stopped_later


def harm_text(names: tuple[str, str], one: Judgement, other: Judgement) -> str:
    """
    Returns the number of calls that two policies deny though they were no pointless repeat, and those that the *other*
    denies.
    """
    counts = harmed(one.total), harmed(other.total)
    figures = "; ".join(f"{name} {plural(n, 'call')}" for name, n in zip(names, counts, strict=True))
    said = [paragraph(f"Refused, and no pointless repeat: {figures}.")]
    if counts[1]:
        before = {_place(stop) for stop in _harming(one)}
        shown = _harming(other)[:SHOWN]
        said.append(heading(f"{names[1]} would refuse"))
        said += [_one(stop, names[0], before) for stop in shown]
        if counts[1] > len(shown):
            more = f"and {counts[1] - len(shown):,} more; `--decisions FILE` has all"
            said.append(paragraph(more, indent="  ", hanging="  "))
    return "\n".join(said)


def next_text(names: tuple[str, str], one: Judgement, other: Judgement) -> str:
    """
    The next step with the *other* policy, after it was held against *one*.
    """
    policy, total = names[1].removesuffix(" (2)"), other.total
    denied = total.denials + total.after_exhaustion.total()
    codes = [code for code, _ in Counter(stop.code for stop in _harming(other)).most_common(1)]
    if codes:
        said = (
            f"look at the calls above: what is honest work must not be refused. `guardrails explain {codes[0]}` says how to "
            f"loosen it in `{policy}`. Then give this command again."
        )
    elif denied:
        said = (
            f"`{policy}` refuses pointless repeats only, {denied:,} of {plural(total.calls, 'call')}. Check it "
            f"(`guardrails policy check {policy}`), load it in place of the one that observes, and report on the next day."
        )
    elif total.observed:
        said = f"`{policy}` refuses nothing: it observes. Set `mode: enforce` once what it would have refused is right."
    else:
        said = (
            f"`{policy}` refuses none of these calls. Record more days, or ask for more: `guardrails report --suggest`."
        )
    return paragraph(f"Next: {said}")


def _harming(judgement: Judgement) -> list[Stop]:
    return [stop for stop in judgement.stops if stop.decision == "deny" and not stop.pointless]


def _place(stop: Stop) -> tuple[str, str, str, int]:
    return stop.source, stop.session_id, stop.run, stop.call_index


def _one(stop: Stop, name: str, before: set[tuple[str, str, str, int]]) -> str:
    why = [stop.why] if stop.why else []
    why += ["no recorded result"] if stop.pointless is None else []
    why.append(f"so does {name}" if _place(stop) in before else f"{name} does not")
    where = f"{stop.source}: {stop.session_id}, call {stop.call_index}"
    return paragraph(f"{where}: {stop.tool}, {stop.code} ({', '.join(why)})", indent="  ", hanging="    ")


def _listed(name: str, why: Counter[str], worked: Counter[str]) -> list[str]:
    each = [f"{reason} {count:,} ({worked[reason]:,} worked)" for reason, count in why.most_common()]
    return [f"{name}: {each[0]}", *each[1:]]
