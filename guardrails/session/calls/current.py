"""
Whose call runs here.
"""

from typing import TYPE_CHECKING

from .running import CALLER


if TYPE_CHECKING:
    from guardrails.session.session import Session


def current_session() -> "Session | None":
    """
    The session whose call runs in this thread or task, for tools that ask it or make calls of their own. Returns None if none
    runs.
    """
    session: Session | None = CALLER.get()
    return session
