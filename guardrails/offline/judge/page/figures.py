"""
The figures of one or two judgements as the page needs them: side by side, right apart from wrong, never too many rows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from guardrails.offline.judge.result import LIMITS, MAX_STOPS, REPEATS, Judgement, Stop, Tally, add
from guardrails.offline.pages.markup import short


OTHERS: Final = "all others"


class Side(NamedTuple):
    """
    One policy of the page.
    """

    name: str
    judgement: Judgement
    total: Tally


class Verdicts(NamedTuple):
    """
    The denials of a tally by their verdicts.
    """

    right: int
    """Pointless repeats."""
    wrong: int
    """Repeats that brought something."""
    unknown: int
    """Repeats without a recorded result."""
    limit: int
    """Budget, rate, growth, streak: neither right nor wrong."""
    rule: int
    """Every other guard."""


def sides(judgement: Judgement, other: Judgement | None) -> list[Side]:
    """
    Returns the judgements with names that tell them apart.
    """
    both = [judgement] if other is None else [judgement, other]
    names = [short(each.policy, 28) or "policy" for each in both]
    if len(set(names)) < len(names):
        names = [f"{name} ({n})" for n, name in enumerate(names, 1)]
    return [Side(name, each, each.total) for name, each in zip(names, both, strict=True)]


def watches(side: Side) -> bool:
    """
    Returns whether the policy denies nothing and its guards in observe mode object: the page shows the objections
    instead.
    """
    return not side.total.denied and not side.total.after_exhaustion and bool(side.total.observed)


def objections(side: Side, tally: Tally) -> Counter[str]:
    """
    The denials of a policy that the pictures show, by code, or its objections if it only watches.
    """
    return tally.observed if watches(side) else tally.denied


def verdicts(side: Side, tally: Tally) -> Verdicts:
    """
    Returns the objections of a policy to the calls of *tally*, those after exhaustion left out.
    """
    codes = objections(side, tally)
    wrong, unknown = tally.wrong.total(), tally.unknown.total()
    limit = tally.limit_stops.total()
    if watches(side):
        wrong, unknown = tally.wrong_observed.total(), 0
        limit = sum(n for code, n in codes.items() if code.startswith(LIMITS))
    repeats = max(sum(n for code, n in codes.items() if code.startswith(REPEATS)), wrong + unknown)
    return Verdicts(repeats - wrong - unknown, wrong, unknown, limit, max(codes.total() - repeats - limit, 0))


def verdict(stop: Stop) -> str:
    """
    Returns the verdict on one stop, in a word or two. Empty if none can be given.
    """
    if stop.pointless:
        return "pointless repeat"
    if stop.decision == "nudge" or not stop.code.startswith(REPEATS):
        return ""
    return "no result recorded" if stop.pointless is None else "wrong"


def is_wrong(stop: Stop) -> bool:
    """
    Returns whether a guard of repeats objected to a call that brought something.
    """
    return verdict(stop) == "wrong"


def cut(judgement: Judgement) -> bool:
    """
    Returns whether there may be more stops than are listed.
    """
    return len(judgement.stops) >= MAX_STOPS


def ranked(all_sides: Iterable[Side]) -> Counter[str]:
    """
    Every code that the page names, with its calls but for those after exhaustion: there are often more of them than of all else.
    """
    codes: Counter[str] = Counter()
    for side in all_sides:
        total = side.total
        for counter in (total.denied, total.nudged, total.observed):
            codes.update(counter)
        named = {*total.after_exhaustion, *total.denied_without_cap, *total.after_exhaustion_without_cap}
        named.update(stop.code for stop in side.judgement.stops)
        named.update(code for line in side.judgement.timelines for _, _, code in line.cells if code)
        codes.update(dict.fromkeys(named, 0))
    return codes


def rows(tallies: Iterable[Mapping[str, Tally]], most: int) -> list[tuple[str, list[Tally]]]:
    """
    Returns the tallies of all sides by name, the *most* with the most calls in the order given. The rest is summed up
    in a last row.
    """
    given = list(tallies)
    names = list(dict.fromkeys(name for tally in given for name in tally))
    if len(names) > most:
        calls = {name: max(side[name].calls if name in side else 0 for side in given) for name in names}
        kept = set(sorted(names, key=lambda name: (-calls[name], name))[:most])
    else:
        kept = set(names)
    shown = [(name, [side.get(name) or Tally(name) for side in given]) for name in names if name in kept]
    rest = [name for name in names if name not in kept]
    if rest:
        sums = []
        for side in given:
            whole = Tally(OTHERS)
            for name in rest:
                if name in side:
                    add(whole, side[name])
            sums.append(whole)
        shown.append((f"{OTHERS} ({len(rest):,})", sums))
    return shown


def by_source(judgement: Judgement) -> dict[str, Tally]:
    """
    Returns the tallies by source; those of one name are one.
    """
    found: dict[str, Tally] = {}
    for tally in judgement.tallies:
        if tally.source in found:
            merged = Tally(tally.source)
            add(merged, found[tally.source])
            add(merged, tally)
            found[tally.source] = merged
        else:
            found[tally.source] = tally
    return found
