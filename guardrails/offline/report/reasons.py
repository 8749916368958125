"""
Which tool to redesign first, and why: what its maker can do, and what its user can who cannot change it.
"""

import math

from collections.abc import Iterable
from typing import Final, NamedTuple

from guardrails.offline.figures import plural

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
_FEW: Final = 5
_MODEL: Final = "give `retryable` a `model`: it learns which of its failures pass, and when"
_REPAIR: Final = "repair the service behind it, or retry within the tool"
_CURES: Final = {
    "validation": (
        "declare what is accepted, and say it in the error",
        "declare its `parameters`: checked before it runs",
    ),
    REFUSED: ("say in the description what is accepted, with an example", "wrap it in a tool with fewer parameters"),
    "invalid_path": ("say which paths are accepted, and name the nearest", "declare its `paths`, and a `workspace`"),
    "not_found": ("offer a search or a list, and name near matches", "wrap it: look the name up first"),
    "precondition": ("name the missing step, or do it in the call", "wrap it together with the step that is missing"),
    "conflict": ("return the present state with the error", "wrap it: answer with the present state"),
    "permission": ("do not offer it to whom it is refused", "keep it from those whom it refuses (`tool_filter`)"),
    "auth": ("check credentials before the tool is offered", "check credentials first, and leave it out"),
    "rate_limit": ("name the wait, take batches, or cache", "keep below its limit by `rate` for this tool"),
    "timeout": ("answer at once with an id, or do less in a call", "declare its `timeout`, and ask for less"),
    "server_error": (_REPAIR, _MODEL),
    "unavailable": (_REPAIR, _MODEL),
    "connection": ("retry within the tool", _MODEL),
    "too_large": ("take a limit or a page, and say its largest value", "wrap it with a limit of your own"),
    "tool_missing": ("offer it, or name the one that is meant", "wrap the tool that is meant under this name"),
    "other": ("give errors a type and a next step", "declare what its failures look like (`result`), or wrap it"),
}
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
    cure: str
    """What its maker can do."""
    own: str
    """What its user can do."""

    def __str__(self) -> str:
        return f"{self.what}: {self.cure}. Not your tool? {self.own[:1].upper()}{self.own[1:]}."


def reasons(tally: Tally) -> list[Reason]:
    """
    Returns the reasons of a tool's wasted calls, the most frequent first, each with a remedy.
    """
    errors = [(kind, n) for kind, n in tally.errors.items() if kind not in NEWS]
    found = [(n, Reason(_failed(kind, n), *_CURES.get(kind, _CURES["other"]))) for kind, n in errors]
    if failing := tally.idle_failures:
        same = "the exact call that failed is refused by `loops` (`unrepaired`) until something is done"
        found.append((failing, Reason(f"{failing:,} repeated an error", _retrying(tally), same)))
    if idle := tally.idle - tally.idle_failures:
        found.append((idle, Reason(f"{idle:,} repeated a result", *_repeating(tally))))
    found.sort(key=lambda one: (-one[0], one[1]))
    told = [reason for n, reason in found if n >= ENOUGH * tally.wasted][:SHOWN]
    fixed = tally.corrections
    if told and fixed.n >= _FEW and fixed.s < CORRECTED * fixed.n:
        what = f"{fixed.s:,} of {fixed.n:,} calls with wrong arguments {'was' if fixed.s == 1 else 'were'} corrected by the next one"
        own = "declare its `parameters`: the refusal names the field"
        told.append(Reason(what, "name in the error the field, what is wrong with it and what is accepted", own))
    return told


def _failed(kind: str, n: int) -> str:
    return f"{_were(n)} refused for wrong arguments" if kind == REFUSED else f"{n:,} failed with {kind}"


def _were(n: int) -> str:
    return f"{n:,} {'was' if n == 1 else 'were'}"


def _retrying(tally: Tally) -> str:
    """
    Returns the advice that would keep a model from failing again.
    """
    retries = tally.retries
    if retries.n and retries.s >= PAYS * retries.n:
        return f"say in it when to call again; {retries.s:,} of {plural(retries.n, 'same call')} after a failure worked"
    return "say in it that the same call fails again, and what to do instead"


def _repeating(tally: Tally) -> tuple[str, str]:
    """
    Returns the advice, for its maker and for its user, that would keep a model from asking for a result again.
    """
    steady = "declare `repeats: evidence` if it changes nothing: the same look is refused once it brought the same"
    if tally.said_polling or waits(tally):
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
