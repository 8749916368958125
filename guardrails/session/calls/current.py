"""
Whose call runs here.
"""

from typing import TYPE_CHECKING

from .running import CALLER


if TYPE_CHECKING:
    from guardrails.core.guards.access.shell import Shell
    from guardrails.session.session import Session


def current_session() -> "Session | None":
    """
    Returns the session whose call runs in this thread or task, for tools that ask it or make calls of their own.
    Returns None if none runs.
    """
    session: Session | None = CALLER.get()
    return session


def current_list(tool: str) -> "Shell | None":
    """
    Returns the guard that holds the commands of *tool* to an allow list, in the session whose call runs here. Returns
    None if there is none, so that any command may have been let pass.
    """
    from guardrails.core.guards.access.shell import Shell

    session = current_session()
    if session is None:
        return None
    chain = session._chain  # noqa: SLF001  of this room
    plans = [chain.plans.get(tool) or chain.plan(tool)]
    if not plans[0].tool.commands:
        # It may be called by another name.
        plans = [plan for plan in list(chain.plans.values()) if plan.tool.by_argv]
    guards = (guard for plan in plans for guard in plan.guards if isinstance(guard, Shell) and plan.tool.commands)
    return next((guard for guard in guards if guard.is_list and guard.mode == "enforce"), None)
