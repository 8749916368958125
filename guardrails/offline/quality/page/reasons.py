"""
Which tool to redesign first, and why.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from guardrails.offline.quality.suggestions.suggest import waits
from guardrails.offline.quality.tally import NEWS, REFUSED, Tally


FORMULA: Final = "score = share of calls wasted x calls"
"""
A call is wasted where it repeats pointlessly (but for tools that poll), is refused as a repeat or for its arguments, or
fails (but for non-zero exits, code errors and cancellations, which are news of the work); each call counts once.
"""
ENOUGH: Final = 0.1
"""Share of a tool's wasted calls from which on a cause is told."""
SHOWN: Final = 4
CORRECTED: Final = 0.5
"""Share of validation errors that the next call should correct at least."""
_FEW: Final = 5
_CURES: Final = {
    "validation": "declare the parameters, so that a wrong call never runs, and describe them with an example",
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
    The tools by their score, the largest first; of equal ones those with the larger share, then by name.
    """
    return sorted(tallies, key=lambda each: (-each.score, each.calls, each.tool))


class Reason(NamedTuple):
    """
    What wasted calls of a tool, and what would help.
    """

    what: str
    cure: str

    def __str__(self) -> str:
        return f"{self.what}: {self.cure}"


def reasons(tally: Tally) -> list[Reason]:
    """
    What the wasted calls of a tool were, the most frequent first, and what would help.
    """
    found = [(n, _failures(kind, n)) for kind, n in tally.errors.items() if kind not in NEWS]
    if tally.idle_failures:
        again = Reason(
            f"{tally.idle_failures:,} repeated an error",
            "say in it that the same call fails again, and what to do instead",
        )
        found.append((tally.idle_failures, again))
    idle = tally.idle - tally.idle_failures
    if idle:
        refused = f" ({tally.refused_repeats:,} of them were refused)" if tally.refused_repeats else ""
        found.append((idle, Reason(f"{idle:,} repeated a result{refused}", _signal(tally))))
    found.sort(key=lambda one: (-one[0], one[1]))
    told = [reason for n, reason in found if n >= ENOUGH * tally.wasted][:SHOWN]
    fixed = tally.corrections
    if told and fixed.n >= _FEW and (fixed.share or 0.0) < CORRECTED:
        what = f"{fixed.s:,} of {fixed.n:,} validation errors were corrected by the next call"
        told.append(Reason(what, "name in the error the field, what is wrong with it and what is accepted"))
    return told


def _failures(kind: str, n: int) -> Reason:
    return Reason(f"{n:,} failed with {kind}", _CURES.get(kind, _CURES["other"]))


def _signal(tally: Tally) -> str:
    """
    What would keep a model from asking for a result again.
    """
    if waits(tally):
        return "it waits for something: declare it as polling, and have it answer when there is news or say when to ask again"
    if tally.dead_ends >= ENOUGH * tally.results > 0:
        return f"say in incomplete results how to go on; {tally.dead_ends:,} of {tally.results:,} do not"
    if tally.results and tally.unsignalled < ENOUGH * tally.results:
        return "its results say already that they are complete: let the policy refuse the repeat (`duplicates`)"
    missing = f"; {tally.unsignalled:,} of {tally.results:,} results do not" if tally.results else ""
    return f"say in the result that it is complete and the same call brings the same{missing}"
