"""
The work that may be the reason why a call ends otherwise the next time.
"""

from collections.abc import Iterable
from typing import Protocol

from guardrails.core.state.entries import MANY, Entry
from guardrails.core.state.state import SessionState


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

    @property
    def worked(self) -> bool: ...


def shown_to_change(since: Iterable[Executed], between: Iterable[Executed]) -> bool:
    """
    Returns whether a look *since* a call showed something else than the same look *between* it and an equal call
    before.
    """
    shown = {call.sig: call.result_hash for call in between if call.status == "ok"}
    return any(call.status == "ok" and shown.get(call.sig, call.result_hash) != call.result_hash for call in since)


def outdated(state: SessionState, last: Entry, *, alone: bool = False) -> bool:
    """
    Returns whether work may have been done since the call *last* was admitted, so that its result is no evidence any
    more.

    Work is any call that may have changed something. It counts from its admission until it is over. An earlier call equal
    to *last* is part of the evidence; *alone*: so is a later one.
    """
    if last.seq <= state.changed_seq:
        return True
    if state.working and any(until > state.now_ms for until in state.working.values()):
        return True
    for entry in reversed(state.window):
        if not entry.worked or entry is last or (alone and entry.sig == last.sig):
            continue
        # Through a shell, or an interpreter, all that is done is done by one tool: other arguments are other work.
        if entry.seq > last.seq or (entry.sig != last.sig and not _over_before(entry, last)):
            return True
    # The window may have forgotten a call that still runs.
    return any(pending.entry.changes and pending.sig != last.sig for pending in state.pending.values())


def _over_before(entry: Entry, last: Entry) -> bool:
    """
    Returns whether all that *entry*, which was admitted before *last*, did was done when *last* was admitted.
    """
    if entry.status not in ("ok", "error") or entry.beside >= MANY:
        return False
    # A host may tell the calls of one turn in another order than they ended.
    return entry.seq + entry.beside < last.seq and not (entry.turn and entry.turn == last.turn)


def settled(state: SessionState, last: Entry, limit_s: float | None) -> bool:
    """
    Returns whether no known thing can have changed since the call *last*: the session has done no work that may change
    one. The call was made at most *limit_s* seconds ago; None sets no bound.
    """
    if limit_s is not None and state.now_ms - last.at_ms > 1_000 * limit_s:
        return False
    if outdated(state, last):
        return False
    return last.error_type != "not_found" or not any(_helps(entry, last, limit_s) for entry in state.window)


def _helps(entry: Entry, last: Entry, limit_s: float | None) -> bool:
    """
    Returns whether *entry* may be why what the call *last* did not find is found the next time.
    """
    if entry.seq > last.seq:
        # A look renews the handles of what is shown (the elements of a page), which a tool that acts may have missed.
        return last.changes and entry.status == "ok"
    # What was just made, or started, may take a moment to be found.
    made = entry.worked and entry.sig != last.sig
    return made and limit_s is not None and last.at_ms - entry.at_ms <= 1_000 * limit_s
