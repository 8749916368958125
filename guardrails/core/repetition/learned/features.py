"""
The signs, known before a call runs, that tell whether it will bring anything new: a level for each of a few factors.

One function, for sessions that run and for records that are replayed alike. It looks at the window of the state only.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from guardrails.core.repetition.commands.waiting import waits
from guardrails.core.repetition.patterns import past, same_end
from guardrails.core.repetition.sketch import NO_SKETCH, sketch_of
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.values.types import ToolCall


VERSION: Final = 1
"""Changes with the meaning of a level; a model knows the version that it was trained on."""
WINDOW: Final = 20
"""Calls that are looked back at."""
RECENT: Final = 6
"""A call that is no exact repeat is looked at where one of so many before it was dull."""
LIKE: Final = 5
"""Calls of the tool that arguments are compared with."""
FACTORS: Final[Mapping[str, int]] = {
    "alike": 6,
    "same": 4,
    "last": 4,
    "two": 3,
    "brought": 5,
    "dull": 5,
    "err_run": 4,
    "changed": 3,
    "period": 4,
    "run": 5,
    "kind": 3,
    "gap": 5,
    "ago": 5,
    "past": 5,
}
"""
How many levels each factor has; 0 is "none" or "unknown" where a factor can be that.

alike: of the arguments to the last calls of the tool (1 unlike, 2 one and 3 two or more of the least words shared, 4 alike
but for what is volatile, 5 equal). same: identical calls. last: how the latest identical call ended (1 it worked, 2 it failed
of a kind that passes, 3 otherwise). two: the last two identical calls ended 1 alike, 2 differently. brought: the result of the
most similar call (1 new, 2 seen before, 3 a failure, 4 empty). dull: calls of the tool in a row that failed, were empty or
ended like the one before. err_run: failures of one family in a row. changed: calls of other tools since the most similar one
that worked and may have changed something. period: of the signatures, 1 to 3. run: calls of the tool in a row. kind: 0 may
change something, 1 only reads, 2 waits for something. gap: calls since the most similar one. ago: time since then. past:
share of the tool's calls that were dull, in quarters.
"""
SAME: Final = list(FACTORS).index("same")
KIND: Final = list(FACTORS).index("kind")
WAITS: Final = 2
"""Level of `kind`."""
UNTIMED_MS: Final = 1 << 31
"""A longer time stands for records that have none; its level, 0, weighs nothing."""

Levels = tuple[int, ...]
"""In the order of `FACTORS`."""

_GAPS: Final = (1, 2, 3, 3, 3)
_RUNS: Final = (0, 1, 2, 2, 3, 3, 3, 3)
_STREAKS: Final = (0, 1, 2, 3, 3, 3)


def looked(call: ToolCall, state: SessionState) -> bool:
    """
    Returns whether anything in *state* suggests that *call* might bring nothing; most calls end here.
    """
    return call.sig in state.latest or state.seq - state.dull_seq < RECENT


def features(call: ToolCall, state: SessionState, *, read_only: bool, polling: bool) -> Levels | None:
    """
    Returns the levels of *call*. Returns None if there is no sign that it might bring nothing. The sketch of the call
    is noted in it.
    """
    return levels(call, past(state), state, read_only=read_only, polling=polling) if looked(call, state) else None


def levels(
    call: ToolCall, before: Sequence[Entry], state: SessionState, *, read_only: bool, polling: bool
) -> Levels | None:
    """
    Returns the same if `looked` said yes; *before* is the result of `patterns.past` for *state*.
    """
    sketch, tool, sig = sketch_of(call), call.tool, call.sig
    after = state.seq - WINDOW
    before = [entry for entry in before if entry.seq > after]
    if not before:
        return None
    own = [entry for entry in before if entry.tool == tool]
    same = [entry for entry in own if entry.sig == sig] if sig is not None else []
    dull = _dull(own)
    place, alike = (own.index(same[0]), 5) if same else _most_alike(sketch, own)
    gap = ago = brought = changed = 0
    if own:
        near = own[place]
        since = state.seq - near.seq
        gap = _GAPS[since] if since < len(_GAPS) else 4
        ago = _ago(state.now_ms - near.at_ms)
        brought = 3 if near.status == "error" else 4 if near.empty else 1 + _seen(own, place)
        changed = _changes(before, near)
    streak = next((at for at, value in enumerate(dull) if not value), len(dull))
    run = next((at for at, entry in enumerate(before) if entry.tool != tool), len(before))
    return (
        alike,
        min(len(same), 3),
        _ended(same[0]) if same else 0,
        0 if len(same) < 2 else 1 if same_end(same[0], same[1]) else 2,
        brought,
        _STREAKS[streak] if streak < len(_STREAKS) else 4,
        min(_errors(own), 3),
        changed,
        _period(sig, before),
        _RUNS[run] if run < len(_RUNS) else 4,
        WAITS if polling or waits(tool) else 1 if read_only else 0,
        gap,
        ago,
        1 + 3 * sum(dull) // len(dull) if dull else 0,
    )


def _dull(own: Sequence[Entry]) -> list[bool]:
    return [
        entry.status == "error" or entry.empty or (at + 1 < len(own) and same_end(entry, own[at + 1]))
        for at, entry in enumerate(own)
    ]


def _most_alike(sketch: int, own: Sequence[Entry]) -> tuple[int, int]:
    """
    Returns (place, level) of the newest of the calls whose arguments are the most alike.
    """
    best, place = (1 if own else 0), 0
    if sketch == NO_SKETCH:
        return place, best
    words = {sketch >> 48 & 0xFFFF, sketch >> 32 & 0xFFFF, sketch >> 16 & 0xFFFF} - {0}
    for at, entry in enumerate(own[:LIKE]):
        other = entry.sketch
        if other == sketch:
            return at, 4
        if other == NO_SKETCH:
            continue
        shared = (other >> 48 & 0xFFFF in words) + (other >> 32 & 0xFFFF in words) + (other >> 16 & 0xFFFF in words)
        if shared >= best:
            best, place = min(3, shared + 1), at
    return place, best


def _seen(own: Sequence[Entry], place: int) -> int:
    near = own[place]
    return int(any(same_end(near, entry) for entry in own[place + 1 :]))


def _changes(before: Sequence[Entry], near: Entry) -> int:
    count = 0
    for entry in before:
        if entry.seq <= near.seq:
            break
        count += entry.changes and entry.status == "ok" and entry.tool != near.tool
    return min(count, 2)


def _ended(entry: Entry) -> int:
    return 1 if entry.status == "ok" else 2 if entry.error_type in TRANSIENT else 3


def _errors(own: Sequence[Entry]) -> int:
    family = own[0].steady if own else 0
    return next(
        (at for at, entry in enumerate(own) if entry.status != "error" or entry.steady != family or not family),
        len(own),
    )


def _period(sig: int | None, before: Sequence[Entry]) -> int:
    if sig is None:
        return 0
    sigs = [entry.sig for entry in before[:4]]
    if sigs[0] == sig:
        return 1
    if len(sigs) > 2 and sigs[1] == sig and sigs[0] == sigs[2]:
        return 2
    return 3 if len(sigs) > 3 and sigs[2] == sig and sigs[0] == sigs[3] else 0


def _ago(ms: int) -> int:
    if ms >= UNTIMED_MS:
        return 0
    return 1 if ms < 10_000 else 2 if ms < 60_000 else 3 if ms < 600_000 else 4
