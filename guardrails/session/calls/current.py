"""
Whose call runs here.
"""

from typing import TYPE_CHECKING

from .running import CALLER


if TYPE_CHECKING:
    from guardrails.session.session import Session


def current_session() -> "Session | None":
    """
    Returns the session whose call runs in this thread or task, for tools that ask it or make calls of their own.
    Returns None if none runs.
    """
    session: Session | None = CALLER.get()
    return session


def has_allow_list(tool: str) -> bool:
    """
    Returns whether the commands of *tool* are held to an allow list in the session whose call runs here. If not it may
    be called by another name: then any tool that is held to one counts.
    """
    from guardrails.core.guards.shell import Shell

    session = current_session()
    if session is None:
        return False
    chain, plan = session.ledger.chain, session.ledger.plan(tool)
    plans = [plan] if plan.tool.commands else list(chain.plans.values())
    guards = (guard for plan in plans if plan.tool.commands for guard in plan.guards)
    return any(isinstance(guard, Shell) and guard.allow and guard.mode == "enforce" for guard in guards)
