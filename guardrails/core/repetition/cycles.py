"""
Cycles of calls: how often they went round, and which of their calls is work that did nothing; work that may be in vain.
"""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Final, Literal

from guardrails.core.state.state import Entry
from guardrails.core.values.types import ErrorType, ToolCall

from .patterns import same_end, same_evidence
from .sketch import NO_SKETCH, alike, document_of
from .tool_names import undoes, writes


MIN_CYCLE: Final = 2
MAX_CYCLE: Final = 5
COPIES: Final = 6
"""Calls that wrote one document under other names, from which on the next is told of."""
CHURNED: Final = 4
"""Times in a row that a thing was made and undone, from which on the next is told of."""
REFUSED: Final[frozenset[ErrorType | None]] = frozenset({"validation", "tool_missing", "invalid_path", "too_large"})
"""Failures that say that the call was wrong, and nothing of what it looked at."""


def laps(before: Sequence[Entry], sig: int | None) -> tuple[int, int]:
    """
    Returns (length, whole laps) of the cycle of calls, each with its result, that *sig* would go on with; (0, 0)
    without one.

    Any call of the cycle goes on with it: if one was refused, the next one is made.
    """
    for length in range(MIN_CYCLE, MAX_CYCLE + 1):
        if len(before) < 2 * length:
            break
        lap = before[:length]
        own = sum(entry.sig == sig for entry in lap)
        if own in (0, length):
            continue
        matched = length
        while matched < len(before) and _like(before[matched], before[matched - length]):
            matched += 1
        if matched >= 2 * length:
            return length, matched // length
    return 0, 0


def _like(a: Entry, b: Entry) -> bool:
    return a.sig == b.sig and a.sig is not None and same_end(a, b)


def paused_s(before: Sequence[Entry], now_ms: int, length: int) -> float:
    """
    Returns seconds of the longest pause in the last lap of a cycle of *length* calls, up to now.
    """
    times = [now_ms, *(entry.at_ms for entry in before[:length])]
    return max(later - sooner for later, sooner in pairwise(times)) / 1_000


def in_vain(before: Sequence[Entry], sig: int | None, length: int, laps: int) -> bool:
    """
    Returns whether the call of *sig* is work that did nothing in each of the last *laps* of a cycle of *length* calls.

    Each call of these laps gave equal evidence. Work is a call that writes by its name. In a cycle without such work,
    the calls that were refused for their arguments count as work. Any other call may be a look at the work.
    """
    calls = before[: length * laps]
    if not all(same_evidence(entry, calls[at % length]) for at, entry in enumerate(calls)):
        return False
    acting = [entry for entry in calls[:length] if entry.changes]
    work = [entry for entry in acting if writes(entry.tool)]
    work = work or [entry for entry in acting if entry.error_type in REFUSED]
    return any(entry.sig == sig for entry in work)


def vain(before: Sequence[Entry], call: ToolCall) -> tuple[Literal["volatile_argument", "cycle"], int]:
    """
    Returns (pattern, count) of work that *call* goes on with, though its names are ever new. One document is written
    again, or a thing that was made is undone at once. The count is 0 if the work may not be in vain.
    """
    document = document_of(call)
    if document:
        count = _copies([entry for entry in before if entry.tool == call.tool], document)
        return "volatile_argument", count if count >= COPIES else 0
    count = _churned(before, call.tool)
    return "cycle", count if count >= CHURNED else 0


def _copies(own: Sequence[Entry], document: int) -> int:
    others = takewhile(lambda entry: entry.sketch >> 16 & 0xFFFF == document, own)
    return len({entry.sig for entry in others})


def _churned(before: Sequence[Entry], tool: str) -> int:
    """
    Returns how often in a row *tool* undid what the call just before had made, and nothing else was done.
    """
    if not before or not undoes(tool, before[0].tool):
        return 0
    count = 0
    for undone, made in zip(before[1::2], before[2::2], strict=False):
        if undone.tool != tool or made.tool != before[0].tool or not same_end(undone, before[1]):
            break
        # It was undone by its name, or one was asked for again and again; at the first ones nobody looked so closely.
        named = alike(undone.sketch, made.sketch) or (count >= MIN_CYCLE and NO_SKETCH in (undone.sketch, made.sketch))
        if made.status != "ok" or not (named or made.sig == before[0].sig):
            break
        count += 1
    return count
