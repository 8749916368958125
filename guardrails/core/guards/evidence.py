"""
The evidence that a repeat brings nothing: which calls count, which results are equal, and for how long they speak.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from guardrails.core.state.entries import MANY, low
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.values.types import ErrorType


LASTING: Final[frozenset[ErrorType | None]] = frozenset(
    {"validation", "not_found", "tool_missing", "invalid_path", "too_large", "code_error"}
)
"""Failures whose cause lies in the call: the same call meets it again unless something is done in between."""
PASSING: Final[frozenset[ErrorType | None]] = frozenset(
    {"rate_limit", "server_error", "unavailable", "timeout", "connection", "conflict", "precondition", "cancelled"}
)
"""Failures that may pass by themselves, or by what somebody else does."""
BURST_MS: Final = 30_000
"""How long two looks speak that were made at once. Half of the recorded calls come within 2 to 8 s of the one before."""
SHARE: Final = 5
"""
How many times the distance between two equal looks they speak, up to what a guard takes for settled.

Measured on recorded calls: of 24 looks after two equal ones none had changed; the latest came 3.1 times the distance later.
"""
SLOW: Final = 2
"""How many times what is taken for settled a slow agent may need for a call; a later look begins anew."""


def past(state: SessionState) -> list[Entry]:
    """
    Returns the calls that are over, newest first. Those of the present turn do not know of each other's results, and those
    before a user's message, or before work of which the window does not tell, say nothing of what comes after it.
    """
    return [*_past(state)]


def past_of(state: SessionState, tool: str) -> Iterator[Entry]:
    """
    Yields the same of one *tool*, as they are asked for: mostly the latest tells enough.
    """
    return (entry for entry in _past(state) if entry.tool == tool)


def _past(state: SessionState) -> Iterator[Entry]:
    turn, since = state.mark or -1, state.changed_seq
    return (one for one in reversed(state.window) if one.seq > since and one.turn != turn and is_over(one))


def is_over(entry: Entry) -> bool:
    """
    Returns whether a call ended in a way that tells something: not given up, not cancelled, no attempt of the library's own.
    """
    return entry.status == "ok" or (entry.status == "error" and entry.error_type != "cancelled" and not entry.retried)


def is_evidence(one: Entry, other: Entry) -> bool:
    """
    Returns whether two calls ended alike, so that a third of their kind would: equal content, or equal words of a failure.

    An acknowledgement and a wait are none, however often they are equal.
    """
    if one.status != other.status or one.unfinished or other.unfinished:
        return False
    if one.status == "error":
        return one.result_hash == other.result_hash or (one.steady == other.steady != 0)
    if one.little:
        return False
    return one.result_hash == other.result_hash or (one.steady == other.steady != 0 and not one.changes)


def recent(state: SessionState, last: Entry, limit_s: float | None, *, times: float = 1) -> bool:
    """
    Returns whether *last* was admitted at most *limit_s* seconds ago, or so many *times* that; None sets no bound.
    """
    return limit_s is None or state.now_ms - last.at_ms <= 1_000 * limit_s * times


def speak(state: SessionState, last: Entry, before: Entry, limit_s: float | None) -> bool:
    """
    Returns whether the equal ends of two looks tell how the same look ends now, at most *limit_s* seconds later.

    A file, an inbox, a price may change while nobody here works: two looks speak for a few times their distance.
    """
    if limit_s is None:
        return True
    apart, most = last.at_ms - before.at_ms, 1_000 * limit_s
    return apart <= SLOW * most and state.now_ms - last.at_ms <= min(max(BURST_MS, SHARE * apart), most)


def moves(state: SessionState, last: Entry, limit_s: float | None) -> bool:
    """
    Returns whether the result of *last* was seen to change by itself, and time has passed since.
    """
    return limit_s is not None and low(last.sig) in state.moving and state.now_ms > last.at_ms


def moved(state: SessionState, entry: Entry) -> bool:
    """
    Returns whether *entry*, which is over, shows something else than the latest look before it, with no work in between.
    """
    if entry.sig is None or not (entry.status == "ok" or entry.error_type == "not_found") or entry.unfinished:
        return False
    before = (one for one in reversed(state.window) if one.sig == entry.sig and one.seq < entry.seq and is_over(one))
    other = next(before, None)
    if other is None or other.status == "error" or other.unfinished or (entry.turn and other.turn == entry.turn):
        # A failure that passes, a wait that is over and calls made at once are no look and a later one.
        return False
    same = entry.result_hash == other.result_hash or entry.steady == other.steady != 0
    return not same and not outdated(state, other, alone=True)


def outdated(state: SessionState, last: Entry, *, alone: bool = False) -> bool:
    """
    Returns whether work may have been done since the call *last* was admitted, so that its result is no evidence any more.

    Work is any call that may have changed something, from its admission until it is over. An earlier call equal to *last* is part
    of the evidence; *alone*: so is a later one.
    """
    if last.seq <= state.changed_seq or any(until > state.now_ms for until in state.working.values()):
        return True
    for entry in reversed(state.window):
        if not entry.worked or entry is last or (alone and entry.sig == last.sig):
            continue
        if entry.seq > last.seq or (entry.sig != last.sig and not _over_before(entry, last)):
            return True
    return any(pending.entry.changes and pending.sig != last.sig for pending in state.pending.values())


def _over_before(entry: Entry, last: Entry) -> bool:
    if entry.status not in ("ok", "error") or entry.beside >= MANY:
        return False
    return entry.seq + entry.beside < last.seq and not (entry.turn and entry.turn == last.turn)


def alike(before: Sequence[Entry], sig: int | None) -> int:
    """
    Returns how many of the latest calls of *sig* ended alike, one of each turn; other calls between them do not matter.
    """
    own = [entry for entry in before if entry.sig == sig]
    turns = set()
    for entry in own:
        if entry is not own[0] and not is_evidence(own[0], entry):
            break
        turns.add(entry.turn or -entry.seq)
    return len(turns)


def brought_news(state: SessionState, entry: Entry) -> bool:
    """
    Returns whether the call of *entry*, which is over, worked and brought a result of no other call of its tool in the window.
    """
    if entry.status != "ok" or entry.empty or entry.unfinished or entry.little:
        return False
    return not any(one is not entry and one.tool == entry.tool and is_evidence(one, entry) for one in state.window)


class Executed(Protocol):
    """
    A call that ran, of a session or of a transcript.
    """

    @property
    def sig(self) -> int | None: ...

    @property
    def status(self) -> str: ...

    @property
    def result_hash(self) -> int | None: ...


def shown_to_change(since: Iterable[Executed], between: Iterable[Executed]) -> bool:
    """
    Returns whether a look *since* a call showed something else than the same look *between* it and an equal call before.
    """
    shown = {call.sig: call.result_hash for call in between if call.status == "ok"}
    return any(call.status == "ok" and shown.get(call.sig, call.result_hash) != call.result_hash for call in since)
