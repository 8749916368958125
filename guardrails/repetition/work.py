"""
Whether work was done that may be why a call ends otherwise the next time.
"""

from collections.abc import Iterable
from typing import Protocol

from ..state import Entry, SessionState


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
    Whether a look *since* a call showed something else than the same look *between* it and an equal call before.
    """
    shown = {call.sig: call.result_hash for call in between if call.status == "ok"}
    return any(call.status == "ok" and shown.get(call.sig, call.result_hash) != call.result_hash for call in since)


def worked_on(calls: Iterable[Executed], sig: int | None) -> bool:
    """
    Whether another call than that of *sig* may have changed something.
    """
    # Through a shell, or an interpreter, all that is done is done by one tool.
    return any(call.worked and call.sig != sig for call in calls)


def settled(state: SessionState, last: Entry, limit_s: float | None) -> bool:
    """
    Whether nothing that is known of can have changed since the call *last*: the session has done no work that may have,
    and it was made at most *limit_s* seconds ago; None: whenever.
    """
    if limit_s is not None and state.now_ms - last.at_ms > 1_000 * limit_s:
        return False
    return not any(_unsettles(entry, last, limit_s) for entry in state.window)


def _unsettles(entry: Entry, last: Entry, limit_s: float | None) -> bool:
    """
    Whether *entry* may be why the call *last* ends otherwise the next time.
    """
    if entry.status == "running" and entry.changes:
        # Nobody knows when it will have done what.
        return True
    absent = last.error_type == "not_found"
    if entry.seq > last.seq:
        # A look renews the handles of what is shown (the elements of a page), which a tool that acts may have missed.
        return entry.worked or (absent and last.changes and entry.status == "ok")
    if not entry.worked or entry.sig == last.sig:
        return False
    # In one turn, nobody knows which of two calls was over first.
    if entry.turn and entry.turn == last.turn:
        return True
    # What was just made, or started, may take a moment to be found.
    return absent and limit_s is not None and last.at_ms - entry.at_ms <= 1_000 * limit_s
