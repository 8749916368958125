"""
Which tool to redesign first, and why.
"""

from collections.abc import Iterable
from typing import Final

from .tally import NEWS, REFUSED, Tally


FORMULA: Final = "score = share of calls wasted x calls"
"""
A call is wasted where it repeats pointlessly (but for tools that poll), is refused as a repeat or for its arguments, or
fails (but for non-zero exits, code errors and cancellations, which are news of the work); each call counts once.
"""
ENOUGH: Final = 0.1
"""Share of a tool's wasted calls from which on a cause is told."""
SHOWN: Final = 4
_CURES: Final = {
    "validation": "say in the schema and description what is accepted, with an example",
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


def reasons(tally: Tally) -> list[str]:
    """
    What the wasted calls of a tool were, the most frequent first, and what would help.
    """
    found: list[tuple[int, str]] = []
    idle = tally.pointless - tally.waits + tally.refused_repeats
    if idle:
        refused = f", {tally.refused_repeats:,} of them refused" if tally.refused_repeats else ""
        cure = "say in the result that it is complete and the same call brings the same"
        if tally.dead_ends:
            cure = "say in incomplete results how to go on"
        found.append((idle, f"{idle:,} repeated for nothing{refused}: {cure}"))
    for kind, n in tally.errors.items():
        if kind not in NEWS:
            found.append((n, f"{n:,} failed with {kind}: {_CURES.get(kind, _CURES['other'])}"))
    told = [said for n, said in sorted(found, reverse=True) if n >= ENOUGH * tally.wasted][:SHOWN]
    if told and tally.corrections.n >= 5 and (tally.corrections.share or 0) < 0.5:
        share = tally.corrections
        told.append(f"only {share.s:,} of {share.n:,} validation errors were corrected by the next call")
    if told and tally.results and tally.unsignalled == tally.results:
        told.append("no result says whether it is complete")
    return told
