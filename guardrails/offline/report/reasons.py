"""
Which tool to redesign first, and why: what its maker can do, and what its user can who cannot change it.
"""

import math

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from guardrails.offline.figures import FEW, plural

from .rows import NEWS, REFUSED
from .suggestions import missed_within, of, waits, wrong
from .tally import Tally


FORMULA: Final = "score = share of calls wasted x calls"
"""What is wasted is said by the column of that name."""
ENOUGH: Final = 0.1
"""Share of a tool's wasted calls from which on a cause is told."""
SHOWN: Final = 4
CORRECTED: Final = 0.5
"""Share of validation errors that the next call should correct at least."""
PAYS: Final = 0.2
"""Share of retries that work from which on the same call is worth making again."""
CURES: Final = yaml.safe_load(Path(__file__).with_name("cures.yaml").read_text(encoding="utf-8"))
"""Kind of failure to the advice for its maker, and for its user."""


def ranked(tallies: Iterable[Tally]) -> list[Tally]:
    """
    Returns the tools by their score, the largest first; of equal ones those with the larger share, then by name.
    """
    return sorted(tallies, key=lambda each: (-each.wasted, each.calls, each.tool))


class Reason(NamedTuple):
    """
    The reason of a tool's wasted calls, and a remedy.
    """

    what: str
    maker: str
    """What the maker of the tool can do."""
    user: str
    """What its user can do."""

    def __str__(self) -> str:
        return f"{self.what}: {self.maker}. Not your tool? {self.user[:1].upper()}{self.user[1:]}."


def reasons(tally: Tally) -> list[Reason]:
    """
    Returns the causes of a tool's wasted calls, the most frequent first, each with a remedy.
    """
    causes = []
    for kind, n in tally.errors.items():
        what = "refused for wrong arguments" if kind == REFUSED else f"failed with {kind}"
        causes += [] if kind in NEWS else [(n, Reason(f"{n:,} {what}", **CURES.get(kind, CURES["other"])))]
    if failing := tally.idle_failures:
        maker, again = "say in it that the same call fails again, and what to do instead", tally.retries
        if again.n and again.s >= PAYS * again.n:
            worked = f"{again.s:,} of {plural(again.n, 'same call')} after a failure worked"
            maker = f"say in it when to call again; {worked}"
        user = "the exact call that failed is refused by `loops` (`unrepaired`) until something is done"
        causes.append((failing, Reason(f"{failing:,} repeated an error", maker, user)))
    if idle := tally.idle - tally.idle_failures:
        causes.append((idle, Reason(f"{idle:,} repeated a result", *_repeating(tally))))
    causes.sort(key=lambda one: (-one[0], one[1]))
    shown = [reason for n, reason in causes if n >= ENOUGH * tally.wasted][:SHOWN]
    fixed = tally.corrections
    if shown and fixed.n >= FEW and fixed.s < CORRECTED * fixed.n:
        what = f"{of(fixed)} calls with wrong arguments {'was' if fixed.s == 1 else 'were'} corrected by the next one"
        shown.append(Reason(what, **CURES["uncorrected"]))
    return shown


def _repeating(tally: Tally) -> tuple[str, str]:
    """
    Returns the advice, for its maker and for its user, that would keep a model from asking for a result again.
    """
    steady = "declare `repeats: evidence` if it changes nothing: the same look is refused once it brought the same"
    if tally.polled or waits(tally):
        news = "it waits for something: have it answer when there is news or say when to ask again"
        return news, "declare `repeats: allow`"
    missed = missed_within(tally, math.inf)
    if wrong(missed):
        moved = f"{of(missed)} repeats brought something new, or came after work"
        return f"say in the result what changes it, or when: {moved}", "say in its description what changes it"
    if tally.dead_ends >= ENOUGH * tally.results > 0:
        missing = f"say in incomplete results how to go on{_not_so(tally.dead_ends, tally.results)}"
        return missing, "declare where it says that there is more (`more`, `total`)"
    if tally.results and tally.unsignalled < ENOUGH * tally.results:
        return "its results say already whether they are complete: let the policy refuse the repeat", steady
    missing = _not_so(tally.unsignalled, tally.results)
    return f"say in the result that it is complete and the same call brings the same{missing}", steady


def _not_so(n: int, results: int) -> str:
    return f"; {n:,} of {plural(results, 'result')} {'does' if n == 1 else 'do'} not" if results else ""
