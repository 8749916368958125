"""
Which tool to redesign first, and why.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from guardrails.offline.figures import plural
from guardrails.offline.report.suggestions import of, others, summed, waits, wrong
from guardrails.offline.report.tally import NEWS, REFUSED, Tally


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
_CURES: Final = {
    "validation": "declare what can be checked, so that a wrong call never runs, and say in the error what is accepted",
    REFUSED: "say in the schema and description what is accepted, with an example",
    "invalid_path": "say which paths are accepted and name the nearest one in the error",
    "not_found": "offer a way to search or list first, and name near matches in the error",
    "precondition": "name the missing step in the error, or do it in the call",
    "conflict": "return the present state with the error",
    "permission": "do not offer it to whom it is refused, or say who may",
    "auth": "check credentials before the tool is offered",
    "rate_limit": "name the wait in the error, take batches, or cache",
    "timeout": "answer at once with an id to ask for, or do less in a call",
    "server_error": "repair the service behind it, or retry within the tool",
    "unavailable": "repair the service behind it, or retry within the tool",
    "connection": "retry within the tool",
    "too_large": "take a limit or a page, and say its largest value",
    "tool_missing": "models call it though it is not there: offer it, or name the one that is",
    "other": "give errors a type and a next step",
}


def ranked(tallies: Iterable[Tally]) -> list[Tally]:
    """
    Returns the tools by their score, the largest first; of equal ones those with the larger share, then by name.
    """
    return sorted(tallies, key=lambda each: (-each.score, each.calls, each.tool))


class Reason(NamedTuple):
    """
    The reason of a tool's wasted calls, and a remedy.
    """

    what: str
    cure: str

    def __str__(self) -> str:
        return f"{self.what}: {self.cure}"


def reasons(tally: Tally) -> list[Reason]:
    """
    Returns the reasons of a tool's wasted calls, the most frequent first, each with a remedy.
    """
    found = [(n, _failures(kind, n)) for kind, n in tally.errors.items() if kind not in NEWS]
    if tally.idle_failures:
        found.append((tally.idle_failures, Reason(f"{tally.idle_failures:,} repeated an error", _retrying(tally))))
    idle = tally.idle - tally.idle_failures - tally.refused_stuck
    if idle:
        refused = tally.refused_repeats - tally.refused_failures
        said = f" ({refused:,} of them {'was' if refused == 1 else 'were'} refused)" if refused else ""
        found.append((idle, Reason(f"{idle:,} repeated a result{said}", _signal(tally))))
    if tally.refused_stuck:
        what = f"{tally.refused_stuck:,} {'was' if tally.refused_stuck == 1 else 'were'} refused for going round in circles"
        found.append((tally.refused_stuck, Reason(what, "say in results that brought nothing what else to ask for")))
    found.sort(key=lambda one: (-one[0], one[1]))
    told = [reason for n, reason in found if n >= ENOUGH * tally.wasted][:SHOWN]
    fixed = tally.corrections
    if told and fixed.n >= _FEW and (fixed.share or 0.0) < CORRECTED:
        were = "was" if fixed.s == 1 else "were"
        what = f"{fixed.s:,} of {fixed.n:,} calls with wrong arguments {were} corrected by the next one"
        told.append(Reason(what, "name in the error the field, what is wrong with it and what is accepted"))
    return told


def _failures(kind: str, n: int) -> Reason:
    what = (
        f"{n:,} {'was' if n == 1 else 'were'} refused for wrong arguments"
        if kind == REFUSED
        else f"{n:,} failed with {kind}"
    )
    return Reason(what, _CURES.get(kind, _CURES["other"]))


def _retrying(tally: Tally) -> str:
    """
    Returns the advice that would keep a model from failing again.
    """
    retries = tally.retries
    if retries.n and retries.s >= PAYS * retries.n:
        return f"say in it when to call again; {retries.s:,} of {plural(retries.n, 'same call')} after a failure worked"
    return "say in it that the same call fails again, and what to do instead"


def _signal(tally: Tally) -> str:
    """
    Returns the advice that would keep a model from asking for a result again.
    """
    if tally.said_polling:
        return "it polls: have it answer when there is news, or say when to ask again"
    if waits(tally):
        return "it waits for something: declare it as polling, and have it answer when there is news or say when to ask again"
    again = summed(tally.always.values())
    if wrong(again):
        return f"say in the result what changes it, or when: {of(others(again))} repeats brought something new, or came after work"
    if tally.dead_ends >= ENOUGH * tally.results > 0:
        return f"say in incomplete results how to go on; {_not_so(tally.dead_ends, tally.results)}"
    if tally.results and tally.unsignalled < ENOUGH * tally.results:
        return "its results say already whether they are complete: let the policy refuse the repeat (`duplicates`)"
    missing = f"; {_not_so(tally.unsignalled, tally.results)}" if tally.results else ""
    return f"say in the result that it is complete and the same call brings the same{missing}"


def _not_so(n: int, results: int) -> str:
    return f"{n:,} of {plural(results, 'result')} {'does' if n == 1 else 'do'} not"
