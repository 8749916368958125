"""
The things that the sessions of a family, a root and its children, share: named counters, and the news that one of them
did work. This module also tells when work is over and which sessions hear of it, and marks changes that happen without
any work.

The root's state holds it. A child has it for the time of a step.
"""

from typing import Final

from .entries import MANY, Entry, low
from .state import SessionState


_MARK: Final = "/"
MOVING: Final = 64
"""Calls of a session that are remembered to show what changes by itself."""


def join(child: SessionState, root: SessionState, session_id: str) -> None:
    """
    Give the state *child* of the session *session_id* what its family shares; `part` takes it back after the step.
    """
    child.meters = root.meters
    child.family = (root.run, root.n, root.shared + 1)
    # Whoever waits for a child has work under way as long as the child lives.
    child.working = {
        other: until
        for other, until in root.working.items()
        if not (session_id + _MARK).startswith(other + _MARK) and until > child.now_ms
    }
    if child.work != root.work:
        child.work, child.changed_seq = root.work, child.seq


def part(child: SessionState, root: SessionState, session_id: str, *, event: bool) -> None:
    """
    Let the family know what the step of *child* did; *event*: it was one.
    """
    # A step may have replaced the counters of the one it was given.
    root.meters, child.meters = child.meters, {}
    child.family, child.working = None, {}
    root.shared += event
    if child.work != root.work:
        root.work, root.changed_seq = child.work, root.seq
    if event:
        open_ = (one for one in child.pending.values() if one.entry.changes and one.parked is None)
        until = max((pending.expires_ms for pending in open_), default=0)
        kept = {other: end for other, end in root.working.items() if other != session_id and end > child.now_ms}
        root.working = {**kept, session_id: until} if until else kept


def end(state: SessionState, entry: Entry) -> None:
    """
    Note which calls were admitted while that of *entry* ran: what it did may have come after them.
    """
    entry.beside = min(state.seq - entry.seq, MANY)
    # A scope holds admissions of its sessions, and no window.
    if entry.worked and state.window and entry.seq < state.window[0].seq:
        outdate(state)


def frees(state: SessionState) -> bool:
    """
    Returns whether a further message of the user frees anything: a call came since the latest one, a refusal, or an
    end.
    """
    came = state.seq > state.changed_seq or bool(state.reserved)
    return not state.closed and (came or bool(state.refusals) or state.refused_turns > 0 or state.exhausted is not None)


def outdate(state: SessionState) -> None:
    """
    Note that work is over which the window does not tell of: all that was seen so far may be older.
    """
    state.changed_seq = state.seq
    tell(state)


def tell(state: SessionState) -> None:
    """
    Let the others of its family know that work begins, or is over.
    """
    if state.family is not None or state.reserved:
        state.work += 1


def note_moved(state: SessionState, sig: int | None) -> None:
    """
    Remember that what calls of *sig* show changes by itself.
    """
    key = low(sig)
    if key not in state.moving:
        state.moving.append(key)
        del state.moving[:-MOVING]
