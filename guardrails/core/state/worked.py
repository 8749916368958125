"""
When work is over, and who hears of it; and what changes without any.
"""

from typing import Final

from .entries import MANY, Entry, low
from .state import SessionState


MOVING: Final = 64
"""Calls of a session that are remembered to show what changes by itself."""


def end(state: SessionState, entry: Entry) -> None:
    """
    Note which calls were admitted while that of *entry* ran: what it did may have come after them.
    """
    entry.beside = min(state.seq - entry.seq, MANY)
    # A scope holds admissions of its sessions, and no window.
    if entry.worked and state.window and entry.seq < state.window[0].seq:
        outdate(state)


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
