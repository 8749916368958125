"""
When work is over, and who hears of it.
"""

from .entries import MANY, Entry
from .state import SessionState


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
