"""
The time for which equal results are evidence: a file, an inbox, a price may change while nobody here works.
"""

from collections.abc import Iterable
from typing import Final

from guardrails.core.state.entries import low
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.state.turns import TOGETHER_MS

from .patterns import same_end
from .work import outdated


BURST_MS: Final = 30_000
"""How long two looks speak that were made at once. Half of the recorded calls come within 2 to 8 s of the one before."""
SHARE: Final = 5
"""
How many times the distance between two equal looks they speak, up to what a guard takes for settled. An agent that repeats
itself at an even pace is refused so often in a row.

Measured: of 24 recorded looks after two equal ones, none had changed; the latest came 31 s after,
and 3.1 times the distance. Nothing recorded tells of later ones, so they run.
"""
SLOW: Final = 2
"""How many times what is taken for settled a slow agent may need for a call; a later look waits as it is, and is told nothing."""
_BITS: Final = 0xFFFF_FFFF


def recent(state: SessionState, last: Entry, limit_s: float | None, *, times: float = 1) -> bool:
    """
    Returns whether *last* was admitted at most *limit_s* seconds ago, or so many *times* that; None sets no bound.
    """
    return limit_s is None or state.now_ms - last.at_ms <= 1_000 * limit_s * times


def speak(state: SessionState, last: Entry, before: Entry, limit_s: float | None) -> bool:
    """
    Returns whether the equal ends of two looks tell how the same look ends now; *limit_s* as for `recent`, and the
    most.

    Times are those of the starts: a call that takes long, or that waits by itself, may show what is there at its start. Who
    comes back later than even a slow agent begins anew.
    """
    if limit_s is None:
        return True
    apart, most = last.at_ms - before.at_ms, 1_000 * limit_s
    return apart <= SLOW * most and state.now_ms - last.at_ms <= min(max(BURST_MS, SHARE * apart), most)


def moves(state: SessionState, last: Entry, limit_s: float | None) -> bool:
    """
    Returns whether the result of *last* was seen to change by itself, and time has passed since; never if *limit_s* is
    None.
    """
    return limit_s is not None and low(last.sig) in state.moving and state.now_ms - last.at_ms > TOGETHER_MS


def shown_to_move(own: Iterable[Entry], sketch: int) -> bool:
    """
    Returns whether the successes among a tool's *own* calls that differ in volatile arguments only, as *sketch* tells,
    differ.
    """
    shown = [entry for entry in own if entry.sketch == sketch and entry.status == "ok"]
    return any(not same_end(entry, shown[0]) for entry in shown)


def moved(state: SessionState, entry: Entry) -> bool:
    """
    Returns whether *entry*, which is over, shows something else than the latest look before it, with no work in
    between.
    """
    if entry.sig is None or not (entry.status == "ok" or entry.error_type == "not_found") or entry.unfinished:
        return False
    for other in reversed(state.window):
        if other.sig == entry.sig and other.seq < entry.seq and other.status in ("ok", "error"):
            break
    else:
        return False
    if other.status == "error" or other.unfinished or (entry.turn and other.turn == entry.turn):
        # A failure that passes, a wait that is over and calls made at once are no look and a later one.
        return False
    return _in_substance(entry, other) and not outdated(state, other, alone=True)


def _in_substance(entry: Entry, other: Entry) -> bool:
    if same_end(entry, other):
        return False
    if entry.status == "error" or not entry.sketch or not entry.steady or other.steady:
        return True
    # Nobody looked closely at the first of them: what has nothing volatile in it differs from it in substance.
    return entry.steady == (entry.result_hash & _BITS or 1)
